#include "orchestrator/service/tunnel_wire.h"

#include <mutex>
#include <string>

#include "evald/error.h"
#include "protocol/messages.h"

namespace evald {
namespace {

// What the two threads share.
struct Middle {
  std::mutex mutex;
  std::string to_send;
  bool over = false;
  std::function<void()> wake;

  void Wake(std::unique_lock<std::mutex> lock) {
    const auto call = wake;
    lock.unlock();
    if (call) call();
  }
};

class LoopEnd : public Wire, public std::enable_shared_from_this<LoopEnd> {
 public:
  explicit LoopEnd(std::shared_ptr<Middle> middle) : middle_(std::move(middle)) {}

  void Read() override {
    reading_ = true;
    Deliver();
  }
  void Send(std::string line) override {
    if (closed_) return;
    std::unique_lock lock(middle_->mutex);
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
      if (handler) handler(line);
    }
  }

  std::shared_ptr<Middle> middle_;
  protocol::LineSplitter lines_;
  bool reading_ = false;
  bool closed_ = false;
};

class ServerEnd : public http::Tunnel {
 public:
  ServerEnd(Loop* loop, std::shared_ptr<Middle> middle, std::shared_ptr<LoopEnd> other)
      : loop_(loop), middle_(std::move(middle)), other_(std::move(other)) {}

  void Received(std::string_view bytes) override {
    loop_->Post([other = other_, text = std::string(bytes)] { other->Received(text); });
  }
  std::string Next(size_t bytes_max) override {
    const std::lock_guard lock(middle_->mutex);
    std::string next = middle_->to_send.substr(0, bytes_max);
    middle_->to_send.erase(0, next.size());
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
  auto wire = std::make_shared<LoopEnd>(middle);
  return {std::make_shared<ServerEnd>(loop, middle, wire), wire};
}

}  // namespace evald
