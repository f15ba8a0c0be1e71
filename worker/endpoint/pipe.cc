#include "worker/endpoint/pipe.h"

#include <utility>

namespace evald::endpoint {

class Pipe::Reader : public http::EventSource {
 public:
  explicit Reader(std::shared_ptr<Pipe> pipe) : pipe_(std::move(pipe)) {}
  ~Reader() override {
    *pipe_->wake_ = nullptr;
    pipe_->gone_ = true;
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  std::string Next(size_t bytes_max) override {
    const std::lock_guard lock(pipe_->mutex_);
    std::string& bytes = pipe_->bytes_;
    if (bytes.size() <= bytes_max) return std::exchange(bytes, "");
    std::string next = bytes.substr(0, bytes_max);
    bytes.erase(0, bytes_max);
    return next;
  }
  bool over() const override {
    const std::lock_guard lock(pipe_->mutex_);
    return pipe_->last_ && pipe_->bytes_.empty();
  }
  void OnMore(std::function<void()> wake) override { *pipe_->wake_ = std::move(wake); }

 private:
  std::shared_ptr<Pipe> pipe_;
};

void Pipe::Write(const std::string& bytes, bool last) {
  {
    const std::lock_guard lock(mutex_);
    bytes_ += bytes;
    last_ = last_ || last;
  }
  post_([wake = wake_] {
    if (*wake) (*wake)();
  });
}

std::shared_ptr<http::EventSource> Pipe::Source(std::shared_ptr<Pipe> pipe) {
  return std::make_shared<Reader>(std::move(pipe));
}

}  // namespace evald::endpoint
