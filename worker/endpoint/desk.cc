#include "worker/endpoint/desk.h"

#include <utility>

namespace evald::endpoint {

Desk::Desk(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

Desk::~Desk() { Stop(); }

void Desk::Post(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  works_.push_back(std::move(work));
  changed_.notify_one();
}

void Desk::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Desk::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !works_.empty(); });
    if (works_.empty()) return;
    const std::function<void()> work = std::move(works_.front());
    works_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

}  // namespace evald::endpoint
