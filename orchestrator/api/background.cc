#include "orchestrator/api/background.h"

namespace evald::api {

Background::Background(int threads, size_t waiting_max) : waiting_max_(waiting_max) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
}

Background::~Background() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  more_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool Background::Run(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (ending_ || waiting_.size() >= waiting_max_) return false;
    waiting_.push_back(std::move(work));
  }
  more_.notify_one();
  return true;
}

void Background::Loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    more_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (ending_) return;
    std::function<void()> work = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
  }
}

}  // namespace evald::api
