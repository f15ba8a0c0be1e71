#include "protocol/channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "evald/error.h"

namespace evald::protocol {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kSocketNameMax = sizeof(sockaddr_un::sun_path) - 1;
constexpr size_t kReadBytes = 64 * 1024;

// Waits until the socket is readable. False if the deadline came first.
bool WaitReadable(int fd, Clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd entry{fd, POLLIN, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::clamp<long>(left, 0, 1000 * 1000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) ThrowErrno("socket", "poll", errno);
    if (Clock::now() >= deadline) return false;
  }
}

}  // namespace

SocketName::SocketName(const std::filesystem::path& path) : text_(path.string()) {
  if (text_.size() <= kSocketNameMax) return;
  const std::filesystem::path folder = path.parent_path().empty() ? "." : path.parent_path();
  folder_.reset(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder_) ThrowErrno(folder, "open the folder of a socket", errno);
  text_ = fmt::format("/proc/self/fd/{}/{}", folder_.get(), path.filename().string());
  if (text_.size() > kSocketNameMax) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{}: the socket's name has {} bytes, too many for a Unix socket",
                            path.string(), path.filename().string().size()),
                "use a name of at most 80 bytes");
  }
}

Channel Channel::Connect(const std::filesystem::path& path) {
  const SocketName name(path);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.text().c_str(), name.text().size() + 1);
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) ThrowErrno(path, "create a socket", errno);
  while (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    if (errno != EINTR) ThrowErrno(path, "connect to the agent's socket", errno);
  }
  return Channel(std::move(socket));
}

Channel::Channel(UniqueFd socket) : socket_(std::move(socket)) {
  const int flags = ::fcntl(socket_.get(), F_GETFD);
  if (flags < 0 || ::fcntl(socket_.get(), F_SETFD, flags | FD_CLOEXEC) != 0) {
    ThrowErrno("socket", "set FD_CLOEXEC", errno);
  }
}

Channel::Channel(Channel&& other) noexcept
    : socket_(std::move(other.socket_)),
      splitter_(std::move(other.splitter_)),
      closed_(other.closed_.load()) {}

void Channel::Send(const Message& message) { SendLine(Encode(message)); }

void Channel::SendLine(std::string_view rest) {
  const std::lock_guard lock(send_mutex_);
  while (!rest.empty()) {
    const ssize_t sent = ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      rest.remove_prefix(static_cast<size_t>(sent));
    } else if (errno != EINTR) {
      throw Error(ErrorKind::kInfrastructure,
                  fmt::format("the connection to the agent is gone: {}", std::strerror(errno)));
    }
  }
}

bool Channel::FillFromSocket(std::chrono::milliseconds timeout) {
  if (!WaitReadable(socket_.get(), Clock::now() + timeout)) return false;
  char bytes[kReadBytes];
  while (true) {
    const ssize_t got = ::recv(socket_.get(), bytes, sizeof bytes, 0);
    if (got > 0) {
      splitter_.Feed({bytes, static_cast<size_t>(got)});
      return true;
    }
    if (got == 0 || errno == ECONNRESET) {
      closed_ = true;
      return false;
    }
    if (errno != EINTR) ThrowErrno("socket", "receive", errno);
  }
}

std::optional<Message> Channel::Receive(std::chrono::milliseconds timeout) {
  const Clock::time_point deadline = Clock::now() + timeout;
  std::string line;
  while (!splitter_.Next(&line)) {
    if (closed_) return std::nullopt;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (!FillFromSocket(std::max(left, std::chrono::milliseconds(0)))) return std::nullopt;
  }
  return Decode(line);
}

void Channel::Shutdown() { ::shutdown(socket_.get(), SHUT_RDWR); }

}  // namespace evald::protocol
