#pragma once

#include <filesystem>
#include <string>

namespace evald {

/// The folder of an agent that a launcher started: on the node's own disk, for this user only, and
/// another one at each start. The destructor removes it. Folders of agents that were killed are
/// removed by the agents after them.
class LaunchedRoot {
 public:
  /// `name` is the host's. Throws Error(kUsage) if the folder for temporary files is not usable.
  explicit LaunchedRoot(const std::string& name);
  ~LaunchedRoot();
  LaunchedRoot(const LaunchedRoot&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace evald
