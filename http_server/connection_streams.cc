// Connections that stay open after the answer's head: event streams and tunnels.
#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

#include "http_server/await.h"
#include "http_server/connection.h"
#include "http_server/event_stream.h"
#include "http_server/tunnel.h"

namespace evald::http {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds kTunnelPause{5};

// Counts an event stream while it is open.
struct OpenStream {
  OpenStream(Shared* shared_in, std::string follower_in, std::string client_in)
      : shared(shared_in), follower(std::move(follower_in)), client(std::move(client_in)) {
    ++shared->statistics.event_streams;
    ++shared->streams[follower];
    ++shared->streams_from[client];
  }
  ~OpenStream() {
    --shared->statistics.event_streams;
    if (--shared->streams[follower] == 0) shared->streams.erase(follower);
    if (--shared->streams_from[client] == 0) shared->streams_from.erase(client);
  }
  OpenStream(const OpenStream&) = delete;
  OpenStream& operator=(const OpenStream&) = delete;
  Shared* shared;
  std::string follower, client;
};

}  // namespace

asio::awaitable<bool> Connection::WriteEvents(EventSource* source, bool chunked,
                                              std::string follower) {
  const OpenStream open(shared_.get(), std::move(follower), client_);
  streaming_ = true;
  source->OnMore([weak = weak_from_this()] {
    if (const auto self = weak.lock()) {
      self->more_ = true;
      self->signal_.cancel();
    }
  });
  asio::co_spawn(
      shared_->context, [self = shared_from_this()] { return self->WatchForEnd(); },
      asio::detached);
  bool silent = false;
  while (!gone_ && !shared_->closing) {
    more_ = false;
    std::string frames = source->Next(kPieceBytes);
    if (frames.empty() && source->over()) {
      if (chunked) static_cast<void>(co_await Write("0\r\n\r\n"));
      break;
    }
    if (frames.empty() && silent) frames = ": still here\n\n";
    silent = false;
    if (frames.empty()) {
      co_await WaitForMore(&silent);
      continue;
    }
    if (chunked) frames = fmt::format("{:x}\r\n{}\r\n", frames.size(), frames);
    const bool written = co_await Write(frames);
    if (!written) break;
  }
  source->OnMore({});
  co_return false;
}

// Waits until the source has more or, with *silent set, as long as a stream may be silent.
asio::awaitable<void> Connection::WaitForMore(bool* silent) {
  NoDeadline();
  if (more_ || gone_) co_return;
  signal_.expires_after(shared_->options.time.keep_alive);
  auto [error] = co_await signal_.async_wait(kAwait);
  *silent = !error;
}

// A follower sends nothing more. The end of reading shows that it has gone.
asio::awaitable<void> Connection::WatchForEnd() {
  char data[1024];
  size_t bytes = 1;
  while (bytes > 0 && !gone_) bytes = co_await stream_.ReadSome(data, sizeof data);
  Close();
}

// Sends the tunnel's bytes until either side ends.
asio::awaitable<void> Connection::RunTunnel(Tunnel* tunnel) {
  streaming_ = true;
  tunnel->OnMore([self = weak_from_this(), weak = std::weak_ptr<Shared>(shared_)] {
    const std::shared_ptr<Shared> shared = weak.lock();
    if (!shared) return;
    asio::post(shared->context, [self] {
      const std::shared_ptr<Connection> connection = self.lock();
      if (!connection) return;
      connection->more_ = true;
      connection->signal_.cancel();
    });
  });
  while (!gone_ && !shared_->closing) {
    more_ = false;
    const std::string bytes = tunnel->Next(kPieceBytes);
    if (!bytes.empty()) {
      const bool written = co_await Write(bytes);
      if (!written) break;
      continue;
    }
    if (tunnel->over()) break;
    NoDeadline();
    if (more_ || gone_) continue;
    signal_.expires_at(Clock::time_point::max());
    static_cast<void>(co_await signal_.async_wait(kAwait));
  }
  Close();
}

asio::awaitable<void> Connection::ReadTunnel(std::shared_ptr<Tunnel> tunnel) {
  // Keeps the stream that is being read
  const std::shared_ptr<Connection> self = shared_from_this();
  char data[kReadBytes];
  asio::steady_timer pause(shared_->context);
  while (!gone_) {
    if (tunnel->full()) {  // unread bytes stay in the kernel, and the other end waits
      pause.expires_after(kTunnelPause);
      static_cast<void>(co_await pause.async_wait(kAwait));
      continue;
    }
    const size_t bytes = co_await stream_.ReadSome(data, sizeof data);
    if (bytes == 0 || gone_) break;
    tunnel->Received({data, bytes});
  }
  Close();
}

}  // namespace evald::http
