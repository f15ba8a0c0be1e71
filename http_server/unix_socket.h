#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>

#include "base/file.h"

namespace evald::http {

/// A listening Unix socket with a name in the file system. Only this process's user and root can
/// connect (mode 0600). The destructor removes the name, unless it stands for another socket by
/// then.
class UnixListener {
 public:
  /// Takes over the name of a socket on which no process listens any more. Throws Error(kUsage) if
  /// the path is too long (107 bytes), if a process listens there, or if it names something that
  /// is no socket.
  explicit UnixListener(std::filesystem::path path);
  ~UnixListener();
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

  /// The listening socket. The caller owns it from then on.
  UniqueFd TakeSocket() { return std::move(socket_); }

 private:
  std::filesystem::path path_;
  UniqueFd socket_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

/// The user at the other end of a Unix socket (SO_PEERCRED, unix(7)), or nothing if the kernel does
/// not say.
std::optional<uid_t> UserAtOtherEnd(int socket);

}  // namespace evald::http
