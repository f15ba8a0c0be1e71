#include "orchestrator/run/task_finisher.h"

#include "evald/error.h"

namespace evald {

TaskFinisher::TaskFinisher(Loop* loop) : loop_(loop), thread_([this] { Main(); }) {}

TaskFinisher::~TaskFinisher() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    queue_.clear();
  }
  wake_.notify_one();
  thread_.join();
}

void TaskFinisher::Submit(FinishedTask task, std::function<void(Json)> done,
                          std::function<void(std::string)> failed) {
  auto work = [this, task = std::move(task), done = std::move(done), failed = std::move(failed)] {
    try {
      Json entry = AggregateFinished(task);
      loop_->Post([done, entry = std::move(entry)] { done(entry); });
    } catch (const std::exception& e) {
      loop_->Post([failed, text = std::string(e.what())] { failed(text); });
    }
  };
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  wake_.notify_one();
}

void TaskFinisher::Main() {
  while (true) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return ending_ || !queue_.empty(); });
      if (ending_) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }
}

}  // namespace evald
