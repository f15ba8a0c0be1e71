#include "orchestrator/service/tunnel_wire.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <string>

#include "base/log.h"
#include "evald/error.h"
#include "protocol/messages.h"

namespace evald {
namespace {

// State that the two threads share.
struct Middle {
  std::mutex mutex;
  std::string to_send;
  size_t sent = 0;  // bytes at the front of to_send that were sent
  bool over = false;
  std::atomic<size_t> unread{0};  // bytes on their way to the loop
  std::function<void()> wake;

  void Wake(std::unique_lock<std::mutex> lock) {
    const auto call = wake;
    lock.unlock();
    if (call) call();
  }
};

class LoopEnd : public Wire, public std::enable_shared_from_this<LoopEnd> {
 public:
  LoopEnd(Loop* loop, std::shared_ptr<Middle> middle) : loop_(loop), middle_(std::move(middle)) {}

  void Read() override {
    reading_ = true;
    Deliver();
  }
  void Send(std::string line) override {
    if (closed_ || closing_) return;
    std::unique_lock lock(middle_->mutex);
    if (middle_->to_send.size() - middle_->sent + line.size() > kUnsentBytesMax) {
      closing_ = true;
      middle_->to_send.clear();
      middle_->sent = 0;
      return loop_->Post(
          [self = shared_from_this()] { self->Close("it does not read what it is sent"); });
    }
    middle_->to_send += line;
    middle_->Wake(std::move(lock));
  }
  void Close(const std::string& why) override {
    if (closed_) return;
    closed_ = true;
    {
      std::unique_lock lock(middle_->mutex);
      middle_->over = true;
      middle_->Wake(std::move(lock));
    }
    const auto notify = std::move(on_closed);
    on_line = nullptr;
    if (notify) notify(why);
  }

  void Received(const std::string& bytes) {
    if (closed_ || closing_) return;  // no handler takes lines any more
    lines_.Feed(bytes);
    if (reading_) Deliver();
  }

 private:
  void Deliver() {
    const auto self = shared_from_this();
    std::string line;
    while (!closed_) {
      try {
        if (!lines_.Next(&line)) return;
      } catch (const Error& e) {
        return Close(std::string("it does not keep to the protocol: ") + e.what());
      }
      const auto handler = on_line;  // a copy: the handler may replace itself
      try {
        if (handler) handler(line);
      } catch (const std::exception& e) {  // the failure ends this connection only
        log::Error("a line of an agent's connection: {}", e.what());
        return Close(std::string("a line cannot be taken: ") + e.what());
      }
    }
  }

  Loop* loop_;
  std::shared_ptr<Middle> middle_;
  protocol::LineSplitter lines_;
  bool reading_ = false;
  bool closing_ = false;  // it closes in a later turn: the sender does not expect it now
  bool closed_ = false;
};

class ServerEnd : public http::Tunnel {
 public:
  ServerEnd(Loop* loop, std::shared_ptr<Middle> middle, std::shared_ptr<LoopEnd> other)
      : loop_(loop), middle_(std::move(middle)), other_(std::move(other)) {}

  void Received(std::string_view bytes) override {
    middle_->unread += bytes.size();
    loop_->Post([other = other_, middle = middle_, text = std::string(bytes)] {
      middle->unread -= text.size();
      other->Received(text);
    });
  }
  bool full() override { return middle_->unread > kUnreadBytesMax || over(); }
  std::string Next(size_t bytes_max) override {
    const std::lock_guard lock(middle_->mutex);
    std::string next = middle_->to_send.substr(middle_->sent, bytes_max);
    middle_->sent += next.size();
    if (middle_->sent * 2 > middle_->to_send.size()) {  // so that each byte is moved about once
      middle_->to_send.erase(0, middle_->sent);
      middle_->sent = 0;
    }
    return next;
  }
  bool over() override {
    const std::lock_guard lock(middle_->mutex);
    return middle_->over;
  }
  void OnMore(std::function<void()> wake) override {
    const std::lock_guard lock(middle_->mutex);
    middle_->wake = std::move(wake);
  }
  void Ended() override {
    loop_->Post([other = other_] { other->Close(""); });
  }

 private:
  Loop* loop_;
  std::shared_ptr<Middle> middle_;
  std::shared_ptr<LoopEnd> other_;
};

}  // namespace

TunnelEnds MakeTunnel(Loop* loop) {
  auto middle = std::make_shared<Middle>();
  auto wire = std::make_shared<LoopEnd>(loop, middle);
  return {std::make_shared<ServerEnd>(loop, middle, wire), wire};
}

}  // namespace evald
