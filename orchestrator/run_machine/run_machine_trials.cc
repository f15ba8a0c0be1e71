// Trials: cutting and leasing them, what is heard of them, and documents that go back.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/names.h"
#include "orchestrator/run_machine/run_machine.h"
#include "orchestrator/schedule/slice.h"
#include "orchestrator/schedule/time_left.h"

namespace evald {
namespace {

// A worker that has not answered an order to shorten a trial for so long has nothing to steal.
// Honest workers answer after the batch under way.
constexpr int64_t kShortenMicros = 10'000'000;
// The longest time that a worker waits for documents that others give back.
constexpr int64_t kStealWaitMicros = 2'000'000;
// Shorter requests may wait for a place.
constexpr double kLongRequestSeconds = 15;
// Documents that are given out by places take at least so many times as long as their lease.
constexpr double kWorthLeases = 100;

}  // namespace

std::string RunMachine::GenerationsFile(size_t task, int64_t first, int64_t trial,
                                        int attempt) const {
  return fmt::format("generations/{}/{}.{}-{}.jsonl", FolderNameOf(specs_[task].name), trial,
                     attempt, first);
}

std::string RunMachine::FileOf(const SliceState& slice, int64_t trial, int attempt) const {
  return GenerationsFile(slice.task, slice.documents.first, trial, attempt);
}

int RunMachine::DeviceOf(Holder worker) {
  const auto at = static_cast<size_t>(worker);
  if (at >= device_of_.size()) device_of_.resize(at + 1, -1);
  if (device_of_[at] < 0) {
    device_of_[at] = static_cast<int>(worker_of_.size());
    worker_of_.push_back(worker);
  }
  return device_of_[at];
}

int64_t& RunMachine::StealWaitOf(Holder worker) {
  const auto at = static_cast<size_t>(worker);
  if (at >= steal_wait_us_.size()) steal_wait_us_.resize(at + 1, INT64_MIN);
  return steal_wait_us_[at];
}

// Places of the worker's engine without a request, as far as is known.
int64_t RunMachine::FreePlaces(Holder worker) const {
  double held = 0;
  for (const int64_t number : trials_table_.ItemsOf(worker)) {
    const TrialState& trial = trials_.at(number);
    double all = 0, reported = 0;
    for (const SliceState& slice : trial.slices) {
      const double requests =
          static_cast<double>(slice.documents.size()) * specs_[slice.task].requests_per_document;
      all += requests;
      reported += slice.reported ? requests : 0;
    }
    held += std::max(0.0, all - std::max(reported, static_cast<double>(trial.requests_done)));
  }
  return work_.places() - static_cast<int64_t>(std::ceil(held));
}

// Long beside what is left to do.
bool RunMachine::IsLong(const TaskEstimate& estimate) const {
  const double share = work_.device_s() / std::max(1, work_.devices());
  return estimate.request_s >= kLongRequestSeconds && 2 * estimate.request_s >= share;
}

// A long request that waits for a place, which another one may hold for as long, holds up the end
// of the run, while other devices would have begun it. So documents whose requests are long, beside
// what is left to do, are given out by places.
void RunMachine::FitIntoPlaces(Holder worker, std::vector<Cut>* cuts) const {
  double places = std::max(1.0, static_cast<double>(FreePlaces(worker)));
  for (size_t i = 0; i < cuts->size(); ++i) {
    Cut& cut = (*cuts)[i];
    const TaskEstimate& estimate = work_.estimate(cut.task);
    if (!IsLong(estimate)) continue;
    const double each = std::max(1.0, specs_[cut.task].requests_per_document);
    // As few documents as that are worth a lease, however
    const double worth = std::ceil(kWorthLeases * lease_s_ / std::max(estimate.device_s, 1e-9));
    const auto fit = static_cast<int64_t>(std::max({1.0, std::floor(places / each), worth}));
    places = std::max(1.0, places - static_cast<double>(std::min(fit, cut.documents)) * each);
    const bool dear = estimate.prefix_s > estimate.device_s * static_cast<double>(fit);
    if (!dear) cut.documents = std::min(cut.documents, fit);
    // Shorter requests would take places from the rest of the task
    if (cut.documents < work_.open(cut.task)) cuts->resize(i + 1);
  }
}

// Cuts the policy's next trial into slices; each slice is scored by itself. The trial is expected
// to end within `seconds`.
std::optional<int64_t> RunMachine::CutTrial(Holder worker, double seconds) {
  if (work_.documents() == 0) return std::nullopt;
  std::vector<Cut> cuts = policy_->Next(work_, DeviceOf(worker) % std::max(1, work_.devices()));
  if (cuts.empty()) return std::nullopt;
  if (const auto probe = ProbeOf(worker, cuts)) cuts = {*probe};
  if (policy_->backs_up_stragglers()) FitIntoPlaces(worker, &cuts);
  if (std::isfinite(seconds)) cuts = CutToFit(work_, cuts, lease_s_, SlownessOf(worker), seconds);
  if (cuts.empty()) return std::nullopt;
  TrialState state;
  for (const Cut& cut : cuts) {
    for (DocumentRange rest : work_.Take(cut.task, cut.documents)) {
      const int64_t most = SliceDocumentsMax(specs_[cut.task].slow_scoring);
      while (rest.size() > 0) {
        const DocumentRange slice{rest.first, std::min(rest.first + most, rest.end)};
        state.slices.push_back({cut.task, slice, false, tasks_[cut.task].salvage});
        rest.first = slice.end;
      }
    }
  }
  const int64_t trial = next_trial_++;
  trials_.Add(trial, std::move(state));
  return trial;
}

std::optional<TrialLease> RunMachine::LeaseTrial(Holder worker, int64_t now, int64_t until_us) {
  const double seconds = std::min(SecondsFor(worker, now, until_us), SecondsOfSlow(worker, now));
  std::function<bool(int64_t)> ends_in_time;
  if (std::isfinite(seconds)) {
    ends_in_time = [this, seconds, slow = SlownessOf(worker)](int64_t trial) {
      return SecondsOf(trials_.at(trial), slow) <= seconds;
    };
  }
  std::optional<Grant> grant = trials_table_.Lease(worker, now, ends_in_time);
  if (!grant) {
    const auto trial = CutTrial(worker, seconds);
    if (!trial) {
      int64_t& since = WaitsSinceOf(worker);
      if (!has_trials() || !IsSlow(DeviceOf(worker))) {
        since = 0;
      } else if (since == 0) {
        since = now;
      }
      return std::nullopt;
    }
    grant = trials_table_.AddLeased(*trial, *trial, worker, now);
  }
  WaitsSinceOf(worker) = 0;
  StealWaitOf(worker) = INT64_MIN;
  TrialLease lease = LeaseOf(*grant, now);
  NoteBegun(worker, now);
  return lease;
}

TrialLease RunMachine::LeaseOf(const Grant& grant, int64_t now) {
  TrialLease lease{grant.item, grant.attempt, {}};
  TrialState& trial = trials_.at(grant.item);
  trial.attempt = grant.attempt;
  trial.requests_done = 0;
  trial.salvaged = 0;
  trial.since_us = trial.quiet_us = now;
  trial.shorten_us = 0;
  for (const SliceState& slice : trial.slices) {
    if (slice.reported) continue;
    lease.slices.push_back({slice.task, slice.documents, slice.salvage});
  }
  return lease;
}

// Documents of the worker's trials that are not begun. Requests are begun in the order of a trial's
// slices; the engine holds as many as it has places.
std::vector<WaitingDocuments> RunMachine::WaitingOf(Holder worker, int64_t now) const {
  std::vector<WaitingDocuments> waiting;
  for (const int64_t number : trials_table_.ItemsOf(worker)) {
    const TrialState& trial = trials_.at(number);
    if (trial.counterpart >= 0) continue;  // it is computed twice already
    if (trial.shorten_us != 0 && now - trial.shorten_us > kShortenMicros) continue;
    double begun = static_cast<double>(trial.requests_done + work_.places());
    for (size_t s = 0; s < trial.slices.size(); ++s) {
      const SliceState& slice = trial.slices[s];
      const double each = std::max(specs_[slice.task].requests_per_document, 1e-9);
      const auto documents =
          std::min(static_cast<int64_t>(std::ceil(begun / each)), slice.documents.size());
      begun = std::max(0.0, begun - static_cast<double>(documents) * each);
      if (slice.reported || documents == slice.documents.size()) continue;
      const int64_t first = std::max(slice.documents.first + documents, slice.documents.first + 1);
      if (first < slice.documents.end) {
        waiting.push_back({number, static_cast<int>(s), slice.task, {first, slice.documents.end}});
      }
    }
  }
  return waiting;
}

bool RunMachine::NoteProgress(Holder worker, const TrialProgress& trial, int64_t now) {
  // The same as LeaseTable::Holds, without a look at the table's item: heartbeats are many
  const std::span<const int64_t> held = trials_table_.ItemsOf(worker);
  if (!std::binary_search(held.begin(), held.end(), trial.trial)) return false;
  TrialState& state = trials_.at(trial.trial);
  if (state.attempt != trial.attempt) return false;
  // A heartbeat without an age means that no request in the engine is old, if requests have ended;
  // otherwise the age is unknown.
  if (trial.oldest_s > 0 || trial.requests_done > state.requests_done)
    state.since_us = now - static_cast<int64_t>(trial.oldest_s * 1e6);
  state.requests_done = trial.requests_done;
  state.salvaged = trial.salvaged;
  if (std::exchange(state.slice_came, false)) state.quiet_us = now;
  return true;
}

void RunMachine::Progressed(Holder worker, std::span<const TrialProgress> trials, int64_t now) {
  bool any = false;
  for (const TrialProgress& trial : trials) any |= NoteProgress(worker, trial, now);
  if (!any || work_.documents() > 0) return;  // reports are not needed yet
  stealing_.Report(Seconds(now), DeviceOf(worker), WaitingOf(worker, now), work_);
  ReportBegun(worker, now);
}

double RunMachine::waiting_s(int64_t now) const {
  return has_trials() || !policy_->backs_up_stragglers() ? 0
                                                         : stealing_.most_waiting_s(Seconds(now));
}

std::vector<ShortenOrder> RunMachine::Steal(Holder worker, int64_t now, int64_t until_us) {
  if (has_trials() || !policy_->backs_up_stragglers() || StealWaitOf(worker) > now) return {};
  const auto theft = stealing_.Next(Seconds(now), DeviceOf(worker));
  if (!theft || !EndsInTime(*theft, worker, SecondsFor(worker, now, until_us))) return {};
  const Holder victim = worker_of_[static_cast<size_t>(theft->device)];
  stealing_.Forget(theft->device);  // until its next report
  StealWaitOf(worker) = now + kStealWaitMicros;
  std::vector<ShortenOrder> orders;
  for (const Grant& grant : trials_table_.HeldBy(victim)) {
    for (const WaitingDocuments& documents : theft->documents) {
      if (documents.trial != grant.item) continue;
      const SliceState& slice =
          trials_.at(grant.item).slices.at(static_cast<size_t>(documents.slice));
      if (slice.reported || documents.documents.first >= slice.documents.end) continue;
      orders.push_back({victim, grant.item, grant.attempt, slice.task, slice.documents.first,
                        documents.documents.first});
      int64_t& asked_us = trials_.at(grant.item).shorten_us;
      if (asked_us == 0) asked_us = now;
    }
  }
  return orders;
}

bool RunMachine::Shortened(Holder worker, int64_t trial, int attempt, size_t task, int64_t first,
                           int64_t end) {
  if (!trials_table_.Holds(worker, trial, attempt)) return false;
  trials_.at(trial).shorten_us = 0;
  for (SliceState& slice : trials_.at(trial).slices) {
    if (slice.task != task || slice.documents.first != first || slice.reported) continue;
    if (end <= first || end >= slice.documents.end) return false;
    if (!tasks_[task].refused) work_.PutBack(task, {end, slice.documents.end});
    slice.documents.end = end;
    return true;
  }
  return false;
}

void RunMachine::Measured(Holder worker, size_t task, int64_t documents, double device_s,
                          double longest_s) {
  backups_.Measured(DeviceOf(worker),
                    work_.estimate(task).device_s * static_cast<double>(documents), device_s);
  NoteSpeed(worker, task, documents, device_s, longest_s);
  const double slow = ExcessOf(worker);
  costs_.Generated(task, documents, device_s / slow, longest_s / slow, &work_);
}

void RunMachine::Overdue(Holder worker, size_t task, double seconds) {
  costs_.Overdue(task, seconds / ExcessOf(worker), &work_);
}

void RunMachine::MeasuredScoring(size_t task, int64_t documents, double score_s) {
  costs_.Scored(task, documents, score_s, &work_);
}

bool RunMachine::SliceReported(Holder worker, int64_t trial, int attempt, size_t task,
                               DocumentRange documents) {
  if (!trials_table_.Holds(worker, trial, attempt)) return false;
  for (SliceState& slice : trials_.at(trial).slices) {
    if (slice.task != task || slice.documents.first != documents.first ||
        slice.documents.end != documents.end || slice.reported) {
      continue;
    }
    slice.reported = trials_.at(trial).slice_came = true;
    Supersede(trial, task, documents);
    return true;
  }
  return false;
}

bool RunMachine::TrialDone(Holder worker, int64_t trial, int attempt) {
  if (!trials_table_.Holds(worker, trial, attempt)) return false;
  if (AllReported(trial)) return CompleteTrial(worker, trial, attempt);
  return TrialFailed(worker, trial, attempt,
                     "the worker called the trial done without all of its slices", true);
}

// Forgets the trial, since nothing asks for its slices any more: memory grows with the work under
// way, not with the run.
bool RunMachine::CompleteTrial(Holder worker, int64_t trial, int attempt) {
  if (!trials_table_.Complete(worker, trial, attempt)) return false;
  const TrialState& done = trials_.at(trial);
  if (done.counterpart >= 0 && !done.backup) Revoke(done.counterpart);
  Part(trial);
  trials_.Erase(trial);
  return true;
}

bool RunMachine::AllReported(const TrialState& trial) {
  return std::all_of(trial.slices.begin(), trial.slices.end(),
                     [](const SliceState& slice) { return slice.reported; });
}

bool RunMachine::TrialFailed(Holder worker, int64_t trial, int attempt, const std::string& cause,
                             bool retry) {
  // All slices are reported: a failure after the last slice is as good as done.
  if (trials_table_.Holds(worker, trial, attempt) && AllReported(trial))
    return CompleteTrial(worker, trial, attempt);
  if (trials_table_.Holds(worker, trial, attempt) && is_backup(trial)) {
    EndBackup(trial, attempt);
    return true;
  }
  if (!trials_table_.Fail(worker, trial, attempt, cause, retry)) return false;
  KeepPartsOf(trial, attempt);
  return true;
}

bool RunMachine::TrialGivenBack(Holder worker, int64_t trial, int attempt) {
  if (!trials_table_.Holds(worker, trial, attempt)) return false;
  if (AllReported(trial)) return CompleteTrial(worker, trial, attempt);
  if (is_backup(trial)) {
    EndBackup(trial, attempt);
    return true;
  }
  trials_table_.GiveBack(worker, trial, attempt);
  KeepPartsOf(trial, attempt);
  return true;
}

void RunMachine::RefuseTask(size_t task, const std::string& cause) {
  TaskState& state = tasks_.at(task);
  if (!state.refused) state.refused = cause;
  work_.Take(task, work_.open(task));
}

bool RunMachine::RequestRefused(Holder worker, int64_t trial, int attempt, size_t task,
                                const std::string& cause) {
  if (!trials_table_.Holds(worker, trial, attempt)) return false;
  RefuseTask(task, cause);
  if (is_backup(trial)) {
    EndBackup(trial, attempt);
    return true;
  }
  for (const SliceState& slice : trials_.at(trial).slices) {
    if (!slice.reported && !tasks_[slice.task].refused)
      Reopen(slice, FileOf(slice, trial, attempt));
  }
  return CompleteTrial(worker, trial, attempt);
}

// Puts a slice's documents back. Any slice of the task can resume from the files of its attempts.
void RunMachine::Reopen(const SliceState& slice, const std::string& file) {
  std::vector<std::string>& known = tasks_[slice.task].salvage;
  std::vector<std::string> files = slice.salvage;
  files.insert(files.end(), {file, file + ".part"});
  for (const std::string& part : files) {
    if (std::find(known.begin(), known.end(), part) == known.end()) known.push_back(part);
  }
  work_.PutBack(slice.task, slice.documents);
}

void RunMachine::WorkerLost(Holder worker, const std::string& cause, Suspect suspect) {
  WaitsSinceOf(worker) = 0;
  stealing_.Forget(DeviceOf(worker));
  backups_.Forget(DeviceOf(worker));
  for (const Grant& grant : trials_table_.HeldBy(worker)) {
    // Revoked together with an earlier one
    if (!trials_table_.Holds(grant.item, grant.attempt)) continue;
    if (AllReported(grant.item)) {
      CompleteTrial(worker, grant.item, grant.attempt);
    } else if (is_backup(grant.item)) {
      EndBackup(grant.item, grant.attempt);
    }
  }
  for (const Grant& grant : trials_table_.Lose(worker, cause, suspect))
    KeepPartsOf(grant.item, grant.attempt);
  std::erase_if(revoked_, [&](const RevokeOrder& order) { return order.worker == worker; });
}

void RunMachine::KeepPartsOf(int64_t trial, int attempt) {
  for (SliceState& slice : trials_.at(trial).slices) {
    if (slice.reported) continue;
    const std::string file = FileOf(slice, trial, attempt);
    slice.salvage.push_back(file);
    slice.salvage.push_back(file + ".part");
  }
}

}  // namespace evald
