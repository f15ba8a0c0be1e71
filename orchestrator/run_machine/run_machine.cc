#include "orchestrator/run_machine/run_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/names.h"
#include "orchestrator/schedule/slice.h"
#include "orchestrator/schedule/time_left.h"

namespace evald {
namespace {

// Work that takes less than the cost of this many leases is not stolen.
constexpr double kStealLeases = 2;

// Ranges of neighbouring documents in a sorted list.
std::vector<DocumentRange> Ranges(const std::vector<int64_t>& documents) {
  std::vector<DocumentRange> ranges;
  for (const int64_t document : documents) {
    if (!ranges.empty() && ranges.back().end == document) {
      ++ranges.back().end;
    } else {
      ranges.push_back({document, document + 1});
    }
  }
  return ranges;
}

}  // namespace

void RunMachine::SetTasks(std::vector<MachineTask> tasks) {
  specs_ = std::move(tasks);
  for (const MachineTask& task : specs_) {
    TaskState state;
    state.generated.assign(static_cast<size_t>(task.documents), false);
    state.scored.assign(static_cast<size_t>(task.documents), false);
    tasks_.push_back(std::move(state));
    TaskEstimate alike;
    alike.name = task.name;
    alike.documents = task.documents;
    alike.dataset = static_cast<int>(costs_.tasks());
    alike.device_s = alike.size = 1;
    costs_.Add({std::move(alike), 1});
  }
}

void RunMachine::Plan(const PlanSetup& setup) {
  next_trial_ = setup.first_trial;
  next_job_ = setup.first_job;
  policy_ = MakePolicy(setup.policy, setup.costs);
  work_ = OpenWork(setup.devices, setup.places, setup.score_slots);
  stealing_ = Stealing(kStealLeases * setup.costs.lease_s);
  lease_s_ = setup.costs.lease_s;
  for (size_t t = 0; t < specs_.size(); ++t) {
    TaskState& state = tasks_[t];
    std::vector<DocumentRange> open;
    for (int64_t d = 0; d < specs_[t].documents; ++d) {
      if (state.generated[d]) {
        ++state.generated_count;
      } else if (!open.empty() && open.back().end == d) {
        ++open.back().end;
      } else {
        open.push_back({d, d + 1});
      }
    }
    state.scored_count = std::count(state.scored.begin(), state.scored.end(), true);
    work_.Add(costs_.Now(t), std::move(open));
  }
}

void RunMachine::SliceLost(size_t task, DocumentRange documents) {
  const TaskState& state = tasks_.at(task);
  if (state.refused) return;
  std::vector<int64_t> open;
  for (int64_t document = documents.first; document < documents.end; ++document) {
    if (!state.generated.at(static_cast<size_t>(document))) open.push_back(document);
  }
  for (const DocumentRange range : Ranges(open)) work_.PutBack(task, range);
}

// ---- metric jobs

void RunMachine::GenerationsCommitted(size_t task, const std::vector<int64_t>& documents,
                                      const std::string& file, int64_t trial, int attempt) {
  TaskState& state = tasks_.at(task);
  for (const int64_t document : documents) {
    if (state.generated.at(document)) continue;
    state.generated[document] = true;
    ++state.generated_count;
  }
  for (const DocumentRange range : Ranges(documents)) AddJob(task, range, file, trial, attempt);
}

// Jobs that run programs take long. They go before all others, in small pieces, so that all metric
// processes have some from the start and end together.
void RunMachine::AddJob(size_t task, DocumentRange documents, const std::string& file,
                        int64_t trial, int attempt) {
  const bool slow = specs_[task].slow_scoring, judged = specs_[task].judged;
  if (const auto& stopped = tasks_[task].judging_stopped)
    return Unscored(task, documents, *stopped);
  const int64_t piece = slow && !judged ? kSlowJobDocuments : documents.size();
  for (int64_t first = documents.first; first < documents.end; first += piece) {
    const int64_t job = next_job_++;
    if (judged) {
      judged_.push_back(job);
    } else {
      jobs_table_.Add(job, slow ? 0 : 1);
    }
    jobs_.Add(job,
              {job, task, {first, std::min(first + piece, documents.end)}, file, trial, attempt});
  }
  QueueJudged();
}

// Jobs that wait for another model leave the metric processes to others: one of them at a time is
// under way, after all that only compute.
void RunMachine::QueueJudged() {
  constexpr int64_t kJudgedRank = 2;
  if (judged_job_ && jobs_table_.has(*judged_job_)) return;
  judged_job_.reset();
  if (judged_.empty()) return;
  judged_job_ = judged_.front();
  judged_.pop_front();
  jobs_table_.Add(*judged_job_, kJudgedRank);
}

void RunMachine::Unscored(size_t task, DocumentRange documents, const std::string& cause) {
  if (!unscored_.empty()) {
    auto& [last, why] = unscored_.back();
    if (last.task == task && last.documents.end == documents.first && why == cause) {
      last.documents.end = documents.end;
      return;
    }
  }
  MetricJob job;
  job.task = task;
  job.documents = documents;
  unscored_.emplace_back(std::move(job), cause);
}

std::vector<DocumentRange> RunMachine::StopJudging(size_t task, const std::string& cause) {
  std::vector<DocumentRange> dropped;
  tasks_.at(task).judging_stopped = cause;
  const auto drop = [&](int64_t job) {
    if (jobs_.at(job).task != task) return false;
    dropped.push_back(jobs_.at(job).documents);
    Unscored(task, dropped.back(), cause);
    jobs_.Erase(job);
    return true;
  };
  std::erase_if(judged_, drop);
  const bool queued =
      judged_job_ && jobs_table_.has(*judged_job_) && !jobs_table_.leased(*judged_job_);
  if (queued && jobs_.at(*judged_job_).task == task) {
    jobs_table_.Revoke(*judged_job_);
    drop(*judged_job_);
  }
  QueueJudged();
  return dropped;
}

// A judged task's file may lack documents, which a later job scores: their files differ.
std::string RunMachine::ScoresFile(const MetricJob& job) const {
  if (specs_[job.task].judged) {
    return fmt::format("scores/{}/{}.{}-{}.{}.jsonl", FolderNameOf(specs_[job.task].name),
                       job.trial, job.attempt, job.documents.first, job.job);
  }
  return fmt::format("scores/{}/{}.{}-{}.jsonl", FolderNameOf(specs_[job.task].name), job.trial,
                     job.attempt, job.documents.first);
}

std::optional<MetricJob> RunMachine::LeaseJob(
    Holder metric_process, int64_t now,
    const std::function<bool(const std::string& generations)>& fits, int64_t until_us) {
  const auto ends_in_time = [&](const MetricJob& job) {
    return until_us == 0 ||
           JobSeconds(work_.estimate(job.task), job.documents.size()) <= Seconds(until_us - now);
  };
  std::function<bool(int64_t)> of_job;
  if (fits || until_us != 0) {
    of_job = [&](int64_t number) {
      const MetricJob& job = jobs_.at(number);
      return (!fits || fits(job.generations)) && ends_in_time(job);
    };
  }
  const auto grant = jobs_table_.Lease(metric_process, now, of_job);
  if (!grant) return std::nullopt;
  MetricJob job = jobs_.at(grant->item);
  job.job_attempt = grant->attempt;
  return job;
}

std::optional<MetricJob> RunMachine::JobDone(Holder metric_process, int64_t job, int attempt,
                                             int64_t end) {
  if (!jobs_table_.Complete(metric_process, job, attempt)) return std::nullopt;
  MetricJob done = std::move(jobs_.at(job));
  jobs_.Erase(job);
  DocumentRange& documents = done.documents;
  if (end > documents.first && end < documents.end) {
    const DocumentRange rest{end, std::exchange(documents.end, end)};
    AddJob(done.task, rest, done.generations, done.trial, done.attempt);
  }
  QueueJudged();
  return done;
}

bool RunMachine::JobFailed(Holder metric_process, int64_t job, int attempt,
                           const std::string& cause, bool retry) {
  if (!jobs_table_.Fail(metric_process, job, attempt, cause, retry)) return false;
  if (!retry) RefuseTask(jobs_.at(job).task, cause);
  QueueJudged();
  return true;
}

void RunMachine::ScoresLost(const MetricJob& job) {
  AddJob(job.task, job.documents, job.generations, job.trial, job.attempt);
}

void RunMachine::MetricProcessLost(Holder metric_process, const std::string& cause,
                                   Suspect suspect) {
  jobs_table_.Lose(metric_process, cause, suspect);
  QueueJudged();
}

void RunMachine::ScoresCommitted(size_t task, const std::vector<int64_t>& documents) {
  TaskState& state = tasks_.at(task);
  for (const int64_t document : documents) {
    if (state.scored.at(document)) continue;
    state.scored[document] = true;
    ++state.scored_count;
  }
}

// ---- looking

std::vector<int64_t> RunMachine::under_way() const {
  std::vector<int64_t> documents(specs_.size(), 0);
  trials_.ForEach([&](int64_t number, const TrialState& trial) {
    if (!trials_table_.leased(number) || trial.backup) return;
    double done = static_cast<double>(trial.requests_done);
    for (const SliceState& slice : trial.slices) {
      const double each = std::max(specs_[slice.task].requests_per_document, 1e-9);
      const auto of_slice = std::min(static_cast<int64_t>(done / each), slice.documents.size());
      done -= static_cast<double>(of_slice) * each;
      if (!slice.reported) documents[slice.task] += of_slice;
    }
  });
  return documents;
}

int64_t RunMachine::salvaged_under_way() const {
  double documents = 0;
  trials_.ForEach([&](int64_t number, const TrialState& trial) {
    if (!trials_table_.leased(number) || trial.backup || trial.slices.empty()) return;
    const double each = specs_[trial.slices.front().task].requests_per_document;
    documents += static_cast<double>(trial.salvaged) / std::max(each, 1e-9);
  });
  return static_cast<int64_t>(documents);
}

int64_t RunMachine::leased_documents() const {
  int64_t documents = 0;
  trials_.ForEach([&](int64_t number, const TrialState& trial) {
    if (!trials_table_.leased(number) || trial.backup) return;
    for (const SliceState& slice : trial.slices) {
      if (!slice.reported) documents += slice.documents.size();
    }
  });
  return documents;
}

int64_t RunMachine::generated(size_t task) const { return tasks_.at(task).generated_count; }
int64_t RunMachine::scored(size_t task) const { return tasks_.at(task).scored_count; }

bool RunMachine::complete() const {
  for (size_t t = 0; t < specs_.size(); ++t) {
    if (!task_finished(t)) return false;
  }
  return true;
}

bool RunMachine::refused() const {
  bool any = false;
  for (size_t t = 0; t < specs_.size(); ++t) {
    if (task_finished(t)) continue;
    if (!tasks_[t].refused) return false;
    any = true;
  }
  return any;
}

std::vector<Missing> RunMachine::missing() const {
  std::vector<Missing> missing;
  for (size_t t = 0; t < specs_.size(); ++t) {
    if (tasks_[t].refused && !task_finished(t))
      missing.push_back({"task " + specs_[t].name, *tasks_[t].refused});
  }
  const auto describe = [&](size_t task, DocumentRange documents, const char* step) {
    return fmt::format("task {}, documents {} to {}: {}", specs_[task].name, documents.first,
                       documents.end - 1, step);
  };
  for (const GivenUp& given_up : trials_table_.given_up()) {
    for (const SliceState& slice : trials_.at(given_up.item).slices) {
      if (slice.reported || tasks_[slice.task].refused) continue;
      missing.push_back({describe(slice.task, slice.documents, "generation"),
                         fmt::format("{} (attempt {})", given_up.cause, given_up.attempts)});
    }
  }
  for (const GivenUp& given_up : jobs_table_.given_up()) {
    const MetricJob& job = jobs_.at(given_up.item);
    if (tasks_[job.task].refused) continue;
    missing.push_back({describe(job.task, job.documents, "scoring"),
                       fmt::format("{} (attempt {})", given_up.cause, given_up.attempts)});
  }
  for (const auto& [job, cause] : unscored_) {
    if (!tasks_[job.task].refused)
      missing.push_back({describe(job.task, job.documents, "verdict"), cause});
  }
  return missing;
}

}  // namespace evald
