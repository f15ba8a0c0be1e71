#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "evald/error.h"
#include "orchestrator/fleet/loop.h"
#include "orchestrator/fleet/wire.h"
#include "protocol/messages.h"

namespace evald {

/// A Wire over an Asio stream: a Unix socket, TCP, or TLS over it. It lives as long as an operation
/// on the stream is under way.
template <typename Stream>
class StreamWire : public Wire, public std::enable_shared_from_this<StreamWire<Stream>> {
 public:
  explicit StreamWire(Stream stream) : stream_(std::move(stream)) {}

  void Read() override {
    if (std::exchange(fed_, false)) {
      boost::asio::post(stream_.get_executor(), [self = this->shared_from_this()] {
        const LoopTurn turn("what came before a connection was ours");
        if (self->Deliver()) self->Read();
      });
      return;
    }
    stream_.async_read_some(boost::asio::buffer(chunk_), [self = this->shared_from_this()](
                                                             const auto& error, size_t bytes) {
      const LoopTurn turn("what a connection brought");
      if (error) return self->Close(error == boost::asio::error::eof ? "" : error.message());
      self->lines_.Feed({self->chunk_, bytes});
      if (self->Deliver()) self->Read();
    });
  }

  /// Adds bytes that were read already, before the first Read, which delivers their lines soon
  /// after: the other end may wait for an answer to them.
  void Feed(std::string_view bytes) {
    lines_.Feed(bytes);
    fed_ = true;
  }

  void Send(std::string line) override {
    if (closed_) return;
    queue_.push_back(std::move(line));
    if (queue_.size() == 1) Write();
  }

  void Close(const std::string& why) override {
    if (closed_) return;
    closed_ = true;
    boost::system::error_code ignored;
    stream_.lowest_layer().close(ignored);
    const auto notify = std::move(on_closed);
    on_line = nullptr;
    if (notify) notify(why);
  }

  /// Delivers all complete lines. False if the wire was closed meanwhile.
  bool Deliver() {
    const auto self = this->shared_from_this();
    std::string line;
    while (!closed_) {
      try {
        if (!lines_.Next(&line)) break;
      } catch (const Error& e) {
        Close(std::string("it does not keep to the protocol: ") + e.what());
        break;
      }
      const auto handler = on_line;  // a copy: the handler may replace itself
      if (handler) handler(line);
    }
    return !closed_;
  }

 private:
  static constexpr size_t kReadBytes = 64 * 1024;

  void Write() {
    boost::asio::async_write(stream_, boost::asio::buffer(queue_.front()),
                             [self = this->shared_from_this()](const auto& error, size_t) {
                               const LoopTurn turn("a connection that can take more");
                               if (error) return self->Close(error.message());
                               self->queue_.pop_front();
                               if (!self->closed_ && !self->queue_.empty()) self->Write();
                             });
  }

  Stream stream_;
  protocol::LineSplitter lines_;
  std::deque<std::string> queue_;
  char chunk_[kReadBytes];
  bool closed_ = false;
  bool fed_ = false;
};

}  // namespace evald
