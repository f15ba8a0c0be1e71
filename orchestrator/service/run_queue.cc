#include "orchestrator/service/run_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/text.h"
#include "orchestrator/prepare/input.h"

namespace evald {
namespace {

// A run whose last files are being written, or whose gates are being judged, needs no place.
bool IsAtWork(const QueuedRun& run) { return run.evaluation && !run.paused && !run.concluding; }

bool HoldsSpace(const QueuedRun& run) { return run.evaluation && NeedsStaging(run.config); }

// Runs at work end some day. A paused run keeps its space until it is asked for the space.
bool HoldsSpaceForNow(const QueuedRun& run) {
  return HoldsSpace(run) && (!run.paused || run.yields || run.concluding);
}

constexpr size_t kNamesMax = 8;  // runs that are named

}  // namespace

QueuedRun* RunQueue::Add(QueuedRun run) {
  const int64_t number = run.number;
  return &runs_.insert_or_assign(number, std::move(run)).first->second;
}

QueuedRun* RunQueue::Find(int64_t number) {
  const auto found = runs_.find(number);
  return found == runs_.end() ? nullptr : &found->second;
}

QueuedRun* RunQueue::Find(const std::string& id) {
  for (auto& [number, run] : runs_) {
    if (run.id == id) return &run;
  }
  return nullptr;
}

// A user's second run is behind the first run of every other user, whatever the runs are doing: a
// run that is prepared for an hour holds its place like one that computes.
std::vector<const QueuedRun*> RunQueue::InOrder() const {
  // By user, the next run's turn: one for each run at work or ahead
  std::map<std::string, int> turn;
  for (const auto& [number, run] : runs_) turn[run.user] += IsAtWork(run) ? 1 : 0;
  std::vector<const QueuedRun*> waiting;
  for (const auto& [number, run] : runs_) {
    if (run.waiting()) waiting.push_back(&run);
  }
  std::stable_sort(waiting.begin(), waiting.end(),
                   [](const auto* a, const auto* b) { return a->priority > b->priority; });
  std::map<const QueuedRun*, int> turns;
  for (const QueuedRun* run : waiting) turns[run] = turn[run->user]++;
  std::stable_sort(waiting.begin(), waiting.end(), [&](const auto* a, const auto* b) {
    return std::pair(-a->priority, turns[a]) < std::pair(-b->priority, turns[b]);
  });
  return waiting;
}

// A run may hold its place for days. So the places are no one user's: a user without any gets one
// as long as fewer users than places have one. Together that is fewer than twice `active_max` runs
// of one priority.
bool RunQueue::HasPlace(const QueuedRun& run, const std::vector<const QueuedRun*>& at_work,
                        int active_max) const {
  int own = 0, places = 0;
  std::set<std::string> users;
  for (const QueuedRun* other : at_work) {
    own += other->user == run.user ? 1 : 0;
    if (other->priority < run.priority || other->stranded || other->aggregating) continue;
    ++places;
    users.insert(other->user);
  }
  if (places < active_max) return run.user.empty() || own < 2 * active_max;
  return own == 0 && static_cast<int>(users.size()) < active_max;
}

// Room that only the user's own runs may release is the user's own concern: others go on.
bool RunQueue::LeavesSpaceTo(const QueuedRun& first, const QueuedRun& run) const {
  if (first.passed < kPassesMax || run.priority > first.priority || !NeedsStaging(run.config))
    return false;
  return std::any_of(runs_.begin(), runs_.end(), [&](const auto& entry) {
    return entry.second.user != first.user && HoldsSpaceForNow(entry.second);
  });
}

QueuedRun* RunQueue::Next(int active_max) {
  std::vector<const QueuedRun*> at_work, without_space;
  for (const auto& [number, run] : runs_) {
    if (IsAtWork(run)) at_work.push_back(&run);
  }
  for (const QueuedRun* run : InOrder()) {
    if (!HasPlace(*run, at_work, active_max)) continue;
    if (run->no_space) {
      without_space.push_back(run);
    } else if (std::none_of(without_space.begin(), without_space.end(),
                            [&](const QueuedRun* first) { return LeavesSpaceTo(*first, *run); })) {
      return Find(run->number);
    }
  }
  return nullptr;
}

void RunQueue::CountPass(const QueuedRun& started) {
  if (!NeedsStaging(started.config)) return;
  for (auto& [number, run] : runs_) {
    if (run.waiting() && run.no_space && run.priority >= started.priority) ++run.passed;
  }
}

bool RunQueue::SpaceMayCome() const {
  return std::any_of(runs_.begin(), runs_.end(),
                     [](const auto& entry) { return HoldsSpaceForNow(entry.second); });
}

bool RunQueue::OthersHoldSpace(const QueuedRun& run) const {
  return std::any_of(runs_.begin(), runs_.end(), [&](const auto& entry) {
    return entry.second.number != run.number && HoldsSpace(entry.second);
  });
}

bool RunQueue::AnyYields() const {
  return std::any_of(runs_.begin(), runs_.end(), [](const auto& entry) {
    return entry.second.yields && HoldsSpace(entry.second);
  });
}

QueuedRun* RunQueue::NextToYield(const QueuedRun& waiting) {
  const auto shared = [this](const QueuedRun& run) {
    return std::any_of(runs_.begin(), runs_.end(), [&](const auto& entry) {
      return HoldsSpaceForNow(entry.second) &&
             entry.second.config.checkpoint == run.config.checkpoint;
    });
  };
  QueuedRun* next = nullptr;
  const auto rank = [&](const QueuedRun& run) {
    return std::tuple(run.user != waiting.user, run.priority, run.number);
  };
  for (auto& [number, run] : runs_) {
    if (!HoldsSpace(run) || HoldsSpaceForNow(run) || shared(run)) continue;
    if (next == nullptr || rank(run) < rank(*next)) next = &run;
  }
  return next;
}

std::string RunQueue::WhoHoldsSpace() const {
  std::vector<std::string> yielding, others;
  for (const auto& [number, run] : runs_) {
    if (!HoldsSpace(run)) continue;
    if (run.yields) {
      yielding.push_back(
          fmt::format("run {} ({}gives its space up once its trials and scores under way are done)",
                      run.id, run.paused ? "paused; " : ""));
    } else {
      others.push_back(fmt::format("run {}{}", run.id, run.paused ? " (paused)" : ""));
    }
  }
  yielding.insert(yielding.end(), others.begin(), others.end());
  if (yielding.size() > kNamesMax) {
    const size_t more = yielding.size() - kNamesMax;
    yielding.resize(kNamesMax);
    yielding.push_back(fmt::format("and {} more", more));
  }
  return Join(yielding, ", ");
}

QueuedRun* RunQueue::LookedAtLongestAgo() {
  std::map<std::string, int64_t> last;  // by user
  std::vector<QueuedRun*> without_space;
  for (auto& [number, run] : runs_) {
    if (!run.waiting() || !run.no_space) continue;
    without_space.push_back(&run);
    last[run.user] = std::max(last[run.user], run.looked_us);
  }
  const auto next = std::min_element(
      without_space.begin(), without_space.end(), [&](const auto* a, const auto* b) {
        return std::pair(last[a->user], a->looked_us) < std::pair(last[b->user], b->looked_us);
      });
  return next == without_space.end() ? nullptr : *next;
}

std::vector<std::string> RunQueue::Waiting() const {
  std::vector<std::string> ids;
  for (const QueuedRun* run : InOrder()) ids.push_back(run->id);
  return ids;
}

}  // namespace evald
