#include "orchestrator/run/run_machine.h"

#include <fmt/format.h>

#include <algorithm>

namespace evald {
namespace {

constexpr int64_t kSlowJobDocuments = 4;

// Stretches of neighbouring documents in a sorted list.
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
  }
}

void RunMachine::Plan(const PlanOptions& options, int64_t first_trial, int64_t first_job) {
  next_job_ = first_job;
  std::vector<PlanTask> plan_tasks;
  for (size_t t = 0; t < specs_.size(); ++t) {
    TaskState& state = tasks_[t];
    std::vector<int64_t> open;
    for (int64_t d = 0; d < specs_[t].documents; ++d) {
      if (!state.generated[d]) open.push_back(d);
    }
    state.generated_count = specs_[t].documents - static_cast<int64_t>(open.size());
    state.scored_count = std::count(state.scored.begin(), state.scored.end(), true);
    plan_tasks.push_back({specs_[t].name, Ranges(open), specs_[t].cost_per_document, specs_[t].slow_scoring});
  }
  int64_t id = first_trial;
  for (const PlanTrial& trial : PlanTrials(plan_tasks, options)) {
    std::vector<SliceState>& slices = trials_[id];
    for (const PlanSlice& slice : trial.slices) {
      slices.push_back({slice.task, slice.documents, false, tasks_[slice.task].salvage});
    }
    trials_table_.Add(id, id);
    ++id;
  }
}

std::string RunMachine::FileOf(const SliceState& slice, int64_t trial, int attempt) const {
  return fmt::format("generations/{}/{}.{}.jsonl", specs_[slice.task].name, trial, attempt);
}

std::optional<TrialLease> RunMachine::LeaseTrial(const std::string& worker, int64_t now) {
  const auto grant = trials_table_.Lease(worker, now);
  if (!grant) return std::nullopt;
  TrialLease lease{grant->item, grant->attempt, {}};
  for (const SliceState& slice : trials_.at(grant->item)) {
    if (slice.reported) continue;
    lease.slices.push_back({slice.task, slice.documents, FileOf(slice, grant->item, grant->attempt), slice.salvage});
  }
  return lease;
}

bool RunMachine::SliceReported(int64_t trial, int attempt, size_t task, DocumentRange documents) {
  if (!trials_table_.Holds(trial, attempt)) return false;
  for (SliceState& slice : trials_.at(trial)) {
    if (slice.task != task || slice.documents.first != documents.first ||
        slice.documents.end != documents.end || slice.reported) {
      continue;
    }
    slice.reported = true;
    return true;
  }
  return false;
}

bool RunMachine::TrialDone(int64_t trial, int attempt) {
  if (!trials_table_.Holds(trial, attempt)) return false;
  if (AllReported(trial)) return trials_table_.Complete(trial, attempt);
  return TrialFailed(trial, attempt, "the worker called the trial done without all of its slices", true);
}

bool RunMachine::AllReported(int64_t trial) const {
  const auto& slices = trials_.at(trial);
  return std::all_of(slices.begin(), slices.end(), [](const SliceState& s) { return s.reported; });
}

bool RunMachine::TrialFailed(int64_t trial, int attempt, const std::string& cause, bool retry) {
  // Nothing of it is left to do: failing after the last slice is as good as done.
  if (trials_table_.Holds(trial, attempt) && AllReported(trial)) return trials_table_.Complete(trial, attempt);
  if (!trials_table_.Fail(trial, attempt, cause, retry)) return false;
  KeepPartsOf(trial, attempt);
  return true;
}

void RunMachine::WorkerLost(const std::string& worker, const std::string& cause) {
  for (const Grant& grant : trials_table_.HeldBy(worker)) {
    if (AllReported(grant.item)) trials_table_.Complete(grant.item, grant.attempt);
  }
  for (const Grant& grant : trials_table_.Lose(worker, cause)) KeepPartsOf(grant.item, grant.attempt);
}

void RunMachine::KeepPartsOf(int64_t trial, int attempt) {
  for (SliceState& slice : trials_.at(trial)) {
    if (slice.reported) continue;
    const std::string file = FileOf(slice, trial, attempt);
    slice.salvage.push_back(file);
    slice.salvage.push_back(file + ".part");
  }
}

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

// Programs take long to run: they go before everything else, in small pieces, so that all metric
// processes have some from the first ones on and end together.
void RunMachine::AddJob(size_t task, DocumentRange documents, const std::string& file, int64_t trial,
                        int attempt) {
  const bool slow = specs_[task].slow_scoring;
  const int64_t piece = slow ? kSlowJobDocuments : documents.size();
  for (int64_t first = documents.first; first < documents.end; first += piece) {
    MetricJob job{next_job_++, task, {first, std::min(first + piece, documents.end)}, file, "", trial, attempt};
    job.file = fmt::format("scores/{}/{}.{}-{}.jsonl", specs_[task].name, trial, attempt, first);
    jobs_table_.Add(job.job, slow ? 0 : 1);
    jobs_.emplace(job.job, std::move(job));
  }
}

std::optional<MetricJob> RunMachine::LeaseJob(const std::string& scorer, int64_t now,
                                              const std::function<bool(const std::string& generations)>& fits) {
  std::function<bool(int64_t)> of_job;
  if (fits) of_job = [&](int64_t job) { return fits(jobs_.at(job).generations); };
  const auto grant = jobs_table_.Lease(scorer, now, of_job);
  if (!grant) return std::nullopt;
  MetricJob job = jobs_.at(grant->item);
  job.job_attempt = grant->attempt;
  return job;
}

std::optional<MetricJob> RunMachine::JobDone(int64_t job, int attempt) {
  if (!jobs_table_.Complete(job, attempt)) return std::nullopt;
  return jobs_.at(job);
}

bool RunMachine::JobFailed(int64_t job, int attempt, const std::string& cause, bool retry) {
  return jobs_table_.Fail(job, attempt, cause, retry);
}

void RunMachine::ScorerLost(const std::string& scorer, const std::string& cause) {
  jobs_table_.Lose(scorer, cause);
}

void RunMachine::ScoresCommitted(size_t task, const std::vector<int64_t>& documents) {
  TaskState& state = tasks_.at(task);
  for (const int64_t document : documents) {
    if (state.scored.at(document)) continue;
    state.scored[document] = true;
    ++state.scored_count;
  }
}

int64_t RunMachine::generated(size_t task) const { return tasks_.at(task).generated_count; }
int64_t RunMachine::scored(size_t task) const { return tasks_.at(task).scored_count; }

bool RunMachine::complete() const {
  for (size_t t = 0; t < specs_.size(); ++t) {
    if (!task_finished(t)) return false;
  }
  return true;
}

std::vector<Missing> RunMachine::missing() const {
  std::vector<Missing> missing;
  const auto describe = [&](size_t task, DocumentRange documents, const char* step) {
    return fmt::format("task {}, documents {} to {}: {}", specs_[task].name, documents.first,
                       documents.end - 1, step);
  };
  for (const GivenUp& given_up : trials_table_.given_up()) {
    for (const SliceState& slice : trials_.at(given_up.item)) {
      if (slice.reported) continue;
      missing.push_back({describe(slice.task, slice.documents, "generation"),
                         fmt::format("{} (attempt {})", given_up.cause, given_up.attempts)});
    }
  }
  for (const GivenUp& given_up : jobs_table_.given_up()) {
    const MetricJob& job = jobs_.at(given_up.item);
    missing.push_back({describe(job.task, job.documents, "scoring"),
                       fmt::format("{} (attempt {})", given_up.cause, given_up.attempts)});
  }
  return missing;
}

}  // namespace evald
