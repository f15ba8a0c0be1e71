#include "http_server/unix_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "evald/error.h"

namespace evald::http {
namespace {

sockaddr_un AddressOf(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string& name = path.native();
  if (name.empty() || name.size() >= sizeof address.sun_path) {
    throw Error(ErrorKind::kUsage,
                fmt::format("socket '{}': found {} bytes, expected 1 to {}", name, name.size(),
                            sizeof address.sun_path - 1),
                "choose a shorter path");
  }
  std::memcpy(address.sun_path, name.data(), name.size());
  return address;
}

UniqueFd NewSocket() {
  return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

[[noreturn]] void Refuse(const std::filesystem::path& path, const std::string& why,
                         const std::string& remedy = "") {
  throw Error(ErrorKind::kUsage, fmt::format("socket {}: {}", path.string(), why), remedy);
}

// Removes the name of a socket whose process has ended.
void RemoveStale(const std::filesystem::path& path, const sockaddr_un& address) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return;
  if (!S_ISSOCK(info.st_mode)) Refuse(path, "is there already, and is no socket");
  const UniqueFd probe = NewSocket();
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
      errno != ECONNREFUSED) {
    Refuse(path, "another process listens there", "choose another path, or end that process");
  }
  ::unlink(path.c_str());
}

}  // namespace

UnixListener::UnixListener(std::filesystem::path path)
    : path_(std::move(path)), socket_(NewSocket()) {
  const sockaddr_un address = AddressOf(path_);
  RemoveStale(path_, address);
  if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    Refuse(path_, std::strerror(errno));
  struct stat info{};
  // Nobody can connect before listen()
  if (::chmod(path_.c_str(), 0600) != 0 || ::lstat(path_.c_str(), &info) != 0 ||
      ::listen(socket_.get(), SOMAXCONN) != 0) {
    Refuse(path_, std::strerror(errno));
  }
  device_ = info.st_dev;
  inode_ = info.st_ino;
}

UnixListener::~UnixListener() {
  struct stat info{};
  if (inode_ == 0 || ::lstat(path_.c_str(), &info) != 0) return;
  if (info.st_dev == device_ && info.st_ino == inode_) ::unlink(path_.c_str());
}

std::optional<uid_t> UserAtOtherEnd(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return std::nullopt;
  return peer.uid;
}

}  // namespace evald::http
