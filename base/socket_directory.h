#pragma once

#include <filesystem>

#include "base/file.h"

namespace evald {

/// A private folder for an agent's Unix socket. The destructor removes it; after a kill, the next
/// SocketDirectory does. Its path is short, since a socket's path has at most 107 bytes: <temporary
/// folder>/evald-<uid>/<process id>-<number>. The parent stays: owners that begin while the last
/// one ends share it.
class SocketDirectory {
 public:
  /// Throws Error if the folder cannot be made, and (kUsage) if the parent is not this user's own.
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
