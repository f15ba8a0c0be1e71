// What idle workers take from others: heartbeats, documents that are given back, and trials that
// another worker has committed.
#include <algorithm>
#include <limits>

#include "orchestrator/schedule/slice.h"
#include "orchestrator/simulate/simulation.h"

namespace evald {
namespace {

constexpr double kHeartbeatSeconds = 0.5;  // as workers report

}  // namespace

// ---- heartbeats

// Only heartbeats that change something are simulated: none before a worker is idle; of a busy
// worker, while something waits on it or once its oldest request has ended; of idle workers, as
// many as get something, and one that does not.
void Simulation::Beat() {
  if (heartbeat_due_ || !run_.steals() || run_.trials_idle()) return;
  heartbeat_due_ = true;
  Push(now_ + kHeartbeatSeconds, Kind::kHeartbeat, 0);
}

void Simulation::OnHeartbeat() {
  heartbeat_due_ = false;
  if (run_.trials_idle()) return;
  for (size_t d = 0; d < devices_.size(); ++d) {
    if (!devices_[d].trials.empty() && devices_[d].report_due <= now_)
      ReportProgress(static_cast<int64_t>(d));
  }
  bool idle = false, vain = false;
  for (size_t d = 0; d < devices_.size(); ++d) {
    const SimDevice& device = devices_[d];
    if (device.lost || !device.wants) continue;
    idle = true;
    if ((vain && !run_.has_trials()) || !device.trials.empty() || device.steal_wait_until > now_)
      continue;
    Hear(static_cast<int64_t>(d), news::Idle{});
    vain = device.wants && device.steal_wait_until <= now_;
  }
  if (idle) Beat();
}

// One heartbeat about all trials of the device.
void Simulation::ReportProgress(int64_t d) {
  SimDevice& device = devices_[d];
  device.report_due = std::numeric_limits<double>::infinity();
  device.queue.Forget(now_);
  progress_.assign(device.trials.size(), {now_, now_, 0});
  size_t at = 0;
  for (const PlacedDocument& document : device.queue.documents()) {
    if (document.end <= now_) continue;
    // Documents of one trial are neighbours, nearly always in the order of the trials
    if (at == device.trials.size() || device.trials[at] != document.trial) {
      at = std::lower_bound(device.trials.begin(), device.trials.end(), document.trial) -
           device.trials.begin();
      if (at == device.trials.size() || device.trials[at] != document.trial) continue;
    }
    LeftDocuments& left = progress_[at];
    ++left.count;
    if (document.begin > now_) left.oldest_end = now_;
    if (document.begin >= left.oldest) continue;
    left.oldest = document.begin;
    left.oldest_end = document.end;
  }
  const bool has_trials = run_.has_trials();
  heartbeat_.clear();
  for (size_t i = 0; i < device.trials.size(); ++i) {
    const SimTrial& trial = trials_[device.trials[i]];
    const LeftDocuments& left = progress_[i];
    const bool again = left.count == 0 || has_trials;
    device.report_due = std::min(device.report_due, again ? now_ : left.oldest_end);
    // The executor of a pending trial is not there yet
    const int64_t done = device.pending == device.trials[i] ? 0 : trial.documents - left.count;
    heartbeat_.push_back({trial.number, trial.attempt, done, now_ - left.oldest});
  }
  run_.Progressed(static_cast<Holder>(d), heartbeat_, micros());
}

// ---- documents that go back

// The worker keeps the documents that it has begun.
void Simulation::Shorten(const ShortenOrder& order) {
  SimDevice& device = devices_[order.worker];
  for (const int64_t number : device.trials) {
    SimTrial& trial = trials_[number];
    if (trial.number != order.trial || trial.attempt != order.attempt) continue;
    for (size_t s = 0; s < trial.slices.size(); ++s) {
      SimSlice& slice = trial.slices[s];
      if (slice.task != order.task || slice.documents.first != order.first || slice.done) continue;
      int64_t end = std::max(order.end, order.first + 1);
      for (const PlacedDocument& document : device.queue.documents()) {
        if (document.begin > now_) break;
        if (document.trial == number && document.slice == static_cast<int>(s))
          end = std::max(end, document.document + 1);
      }
      if (!run_.Shortened(order.worker, trial.number, trial.attempt, slice.task, order.first, end))
        return;
      trial.documents -= slice.documents.end - end;
      slice.documents.end = end;
      came_back_ = true;
      device.queue.Drop(now_, [&](const PlacedDocument& document) {
        return document.trial == number && document.slice == static_cast<int>(s) &&
               document.document >= end;
      });
      ScheduleAllSlices(&device);
      if (decouplings_.stay_warm && decouplings_.score_elsewhere) ScheduleNextWant(order.worker);
      return;
    }
  }
}

// The engine cannot forget single requests: while others are under way, those of this trial end
// unread.
void Simulation::Revoke(int64_t number) {
  const int64_t d = trials_[number].device;
  SimDevice& device = devices_[d];
  EndOnDevice(number);
  const auto documents = device.queue.documents();
  const bool others =
      std::any_of(documents.begin(), documents.end(), [this](const PlacedDocument& document) {
        return document.begin <= now_ && document.end > now_ && !trials_[document.trial].over;
      });
  const auto revoked = [this](const PlacedDocument& document) {
    return trials_[document.trial].over;
  };
  if (others) {
    device.queue.Drop(now_, revoked);
  } else {
    device.queue.Stop(now_, revoked);
  }
  ScheduleAllSlices(&device);
  ScheduleWant(d, now_);
}

// ---- requests that run past the longest time expected of their task

// Heartbeats tell of such a request before it ends. In each slice only the first is watched.
void Simulation::WatchOverdue(const SimTrial& trial, const std::vector<PlacedDocument>& documents) {
  size_t seen = trial.slices.size();
  for (const PlacedDocument& document : documents) {
    const auto slice = static_cast<size_t>(document.slice);
    if (slice == seen) continue;
    const double due_s = run_.expected(trial.slices[slice].task).request_s * kOverdueGrowth;
    if (document.place_s <= due_s) continue;
    seen = slice;
    Push(document.begin + due_s, Kind::kOverdue, document.trial, document.slice, document.document);
  }
}

void Simulation::OnOverdue(const Event& event) {
  const SimTrial& trial = trials_[event.a];
  if (trial.over || trial.slices[event.b].done) return;
  for (const PlacedDocument& document : devices_[trial.device].queue.documents()) {
    if (document.trial != event.a || document.document != event.version ||
        document.slice != event.b)
      continue;
    const double age_s = now_ - document.begin;
    if (document.end <= now_ || age_s <= 0) return;
    run_.Overdue(trial.device, trial.slices[event.b].task, age_s);
    if (document.end > now_ + age_s * (kOverdueGrowth - 1))
      Push(document.begin + age_s * kOverdueGrowth, Kind::kOverdue, event.a, event.b,
           event.version);
    return;
  }
}

}  // namespace evald
