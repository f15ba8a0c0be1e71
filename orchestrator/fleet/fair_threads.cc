#include "orchestrator/fleet/fair_threads.h"

#include <pthread.h>

#include <utility>

namespace evald {

FairThreads::FairThreads(const std::string& name, Loop* loop, Limits limits)
    : loop_(loop), queue_(limits.waiting_max, limits.waiting_per_user_max) {
  for (int i = 0; i < limits.threads; ++i) {
    threads_.emplace_back([this] { Main(); });
    ::pthread_setname_np(threads_.back().native_handle(), name.c_str());
  }
}

FairThreads::~FairThreads() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Taken FairThreads::Post(const std::string& user, std::function<void()> work,
                        WorkThread::Done done) {
  const std::lock_guard lock(mutex_);
  wake_.notify_one();
  return queue_.Add(user, {std::move(work), std::move(done)});
}

void FairThreads::Main() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    auto turn = queue_.Next();
    if (!turn) {
      wake_.wait(lock);
      continue;
    }
    lock.unlock();
    std::move(turn->second).Run(loop_);
    lock.lock();
    queue_.Done(turn->first);
  }
}

}  // namespace evald
