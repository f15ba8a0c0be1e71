#include "orchestrator/state/database_thread.h"

#include <utility>

namespace evald {

DatabaseThread::DatabaseThread(RunStore* store, Loop* loop,
                               std::function<void(std::exception_ptr)> failed)
    : store_(store), loop_(loop), failed_(std::move(failed)), thread_([this] { Main(); }) {}

DatabaseThread::~DatabaseThread() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void DatabaseThread::Post(std::function<void(RunStore&)> work, std::function<void()> done) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({std::move(work), std::move(done)});
  }
  wake_.notify_one();
}

void DatabaseThread::Main() {
  while (true) {
    std::deque<Task> batch;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return ending_ || !queue_.empty(); });
      if (queue_.empty()) return;
      batch.swap(queue_);
    }
    RunBatch(&batch);
  }
}

void DatabaseThread::RunBatch(std::deque<Task>* batch) {
  if (broken_) return;
  try {
    store_->database().Transaction([&] {
      for (Task& task : *batch) task.work(*store_);
    });
  } catch (...) {
    broken_ = true;
    loop_->Post([failed = failed_, error = std::current_exception()] { failed(error); });
    return;
  }
  for (Task& task : *batch) {
    if (task.done) loop_->Post(std::move(task.done));
  }
}

}  // namespace evald
