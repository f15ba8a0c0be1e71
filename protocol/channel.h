#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "protocol/messages.h"

namespace evald::protocol {

/// A name for a Unix socket that fits into `sockaddr_un` (107 bytes). A longer path is reached
/// through its open folder, as /proc/self/fd/N/<name>. The name is valid in this process, during
/// the lifetime of this object.
class SocketName {
 public:
  /// Throws Error(kInfrastructure) if the folder is missing or the last component is too long.
  explicit SocketName(const std::filesystem::path& path);
  const std::string& text() const { return text_; }

 private:
  UniqueFd folder_;
  std::string text_;
};

/// The blocking end of a connection, for workers and metric processes. Send may be called from any
/// thread; Receive from one thread at a time. Never raises SIGPIPE; not inherited over exec.
class Channel {
 public:
  /// Throws Error(kInfrastructure) naming the socket.
  static Channel Connect(const std::filesystem::path& path);
  /// Takes a connected stream socket.
  explicit Channel(UniqueFd socket);
  Channel(Channel&& other) noexcept;

  /// Blocks while the other end does not read. Throws Error(kInfrastructure) if the other end is
  /// gone.
  void Send(const Message& message);
  /// The same for a complete line with its newline.
  void SendLine(std::string_view line);

  /// The next message. Nothing if `timeout` has passed or the other end has closed (see closed()).
  /// Throws Error(kInput) for an invalid message; later messages can still be received. Throws
  /// Error(kInfrastructure) for a failed read.
  std::optional<Message> Receive(std::chrono::milliseconds timeout);

  /// Whether the other end has closed and all its messages were received.
  bool closed() const { return closed_; }
  /// Makes Receive and Send return on any thread, with the connection closed.
  void Shutdown();

 private:
  bool FillFromSocket(std::chrono::milliseconds timeout);

  UniqueFd socket_;
  std::mutex send_mutex_;
  LineSplitter splitter_;
  std::atomic<bool> closed_{false};
};

}  // namespace evald::protocol
