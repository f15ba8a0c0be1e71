#include "orchestrator/run/task_finisher.h"

#include <map>
#include <memory>

#include "evald/error.h"
#include "metrics/aggregate.h"
#include "metrics/line_index.h"
#include "metrics/scorer.h"
#include "orchestrator/report/results.h"
#include "prepared/prepared_task.h"

namespace evald {
namespace {

// Opens each of a task's files once, when a document of it is first asked for.
template <typename Reader>
class Readers {
 public:
  explicit Readers(const std::vector<std::filesystem::path>& files) : files_(files) {}
  const Reader& operator[](size_t file) {
    std::unique_ptr<Reader>& reader = open_[file];
    if (!reader) reader = std::make_unique<Reader>(files_.at(file));
    return *reader;
  }

 private:
  const std::vector<std::filesystem::path>& files_;
  std::map<size_t, std::unique_ptr<Reader>> open_;
};

}  // namespace

TaskResult AggregateFinished(const FinishedTask& task) {
  const PreparedTask prepared(task.prepared);
  const Scorer scorer(task.definition, nullptr);
  Readers<ScoreReader> scores(task.score_files);
  Readers<GenerationReader> generations(task.generation_files);

  std::vector<ScoredDocument> all;
  for (size_t document = 0; document < task.score_of.size(); ++document) {
    ScoredDocument score = scores[task.score_of[document]].Read(static_cast<int64_t>(document));
    for (FilterScore& filter : score.filters) filter.filtered = nullptr;  // texts are not aggregated
    score.detail = nullptr;
    all.push_back(std::move(score));
  }
  TaskResult result;
  result.entry = AggregateTask(task.definition, all, task.bootstrap_iters);

  SampleSource source;
  source.score = [&](int64_t document) -> std::optional<ScoredDocument> {
    return scores[task.score_of.at(static_cast<size_t>(document))].Read(document);
  };
  source.generations = [&](int64_t document) {
    const int requests = scorer.Requests(prepared.Document(document));
    return generations[task.generation_of.at(static_cast<size_t>(document))].Read(document, requests,
                                                                                 task.definition.repeats);
  };
  result.hash = WriteSamples(task.samples, task.definition, prepared, source);
  return result;
}

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

void TaskFinisher::Submit(FinishedTask task, std::function<void(TaskResult)> done,
                          std::function<void(std::string)> failed) {
  auto work = [this, task = std::move(task), done = std::move(done), failed = std::move(failed)] {
    try {
      TaskResult result = AggregateFinished(task);
      loop_->Post([done, result = std::move(result)] { done(result); });
    } catch (const std::exception& e) {
      loop_->Post([failed, text = std::string(e.what())] { failed(text); });
    }
  };
  Queue(std::move(work));
}

void TaskFinisher::Run(std::function<void()> work, std::function<void()> done) {
  Queue([this, work = std::move(work), done = std::move(done)] {
    work();
    loop_->Post(done);
  });
}

void TaskFinisher::Queue(std::function<void()> work) {
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
