#include "orchestrator/fleet/work_thread.h"

#include <pthread.h>

#include <utility>

namespace evald {

Error CurrentError() {
  try {
    throw;
  } catch (const Error& e) {
    return e;
  } catch (const std::exception& e) {
    return Error(ErrorKind::kInternal, e.what());
  }
}

void LoopTask::Run(Loop* loop) && {
  std::optional<Error> error;
  try {
    work();
  } catch (...) {
    error = CurrentError();
  }
  work = nullptr;
  if (done) loop->Post([done = std::move(done), error = std::move(error)] { done(error); });
}

WorkThread::WorkThread(const std::string& name, Loop* loop, AtEnd at_end)
    : loop_(loop), at_end_(at_end), thread_([this] { Main(); }) {
  ::pthread_setname_np(thread_.native_handle(), name.c_str());
}

WorkThread::~WorkThread() {
  std::deque<LoopTask> dropped;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    if (at_end_ == AtEnd::kDrop) dropped.swap(queue_);
  }
  wake_.notify_one();
  dropped.clear();
  thread_.join();
}

void WorkThread::Post(std::function<void()> work, Done done) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({std::move(work), std::move(done)});
  }
  wake_.notify_one();
}

void WorkThread::Main() {
  while (true) {
    LoopTask task;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return ending_ || !queue_.empty(); });
      if (queue_.empty()) return;
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    std::move(task).Run(loop_);
  }
}

}  // namespace evald
