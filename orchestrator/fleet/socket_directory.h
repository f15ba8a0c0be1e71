#pragma once

#include <filesystem>

#include "base/file.h"

namespace evald {

/// A private folder for an agent's Unix socket, gone with its owner: removed by the destructor, or,
/// after a kill, by the next one that is made. Its path is short, since a socket's has at most 107
/// bytes: <temporary folder>/evald-<uid>/<process id>-<number>.
class SocketDirectory {
 public:
  /// Throws Error when it cannot be made, or (kUsage) when the parent is not this user's own.
  SocketDirectory();
  ~SocketDirectory();
  SocketDirectory(const SocketDirectory&) = delete;
  SocketDirectory& operator=(const SocketDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  UniqueFd lock_;  ///< held while the owner lives
};

}  // namespace evald
