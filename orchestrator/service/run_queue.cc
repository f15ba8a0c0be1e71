#include "orchestrator/service/run_queue.h"

#include <algorithm>

namespace evald {
namespace {

// One whose last files are written, or whose gates are judged, needs no place any more.
bool IsAtWork(const QueuedRun& run) { return run.evaluation && !run.paused && !run.concluding; }

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

// A user's second run is behind the first of every other user, whatever they take: a run that is
// prepared for an hour holds its place as well as one that computes.
std::vector<const QueuedRun*> RunQueue::InOrder() const {
  std::map<std::string, int>
      turn;  // of the user's next run: one for each that is at work or goes before
  for (const auto& [number, run] : runs_) turn[run.user] += IsAtWork(run) ? 1 : 0;
  std::vector<const QueuedRun*> waiting;
  for (const auto& [number, run] : runs_) {
    if (!run.evaluation && !run.paused && run.state == "queued") waiting.push_back(&run);
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

QueuedRun* RunQueue::Next(int active_max) {
  const auto waiting = InOrder();
  if (waiting.empty()) return nullptr;
  const QueuedRun* first = waiting.front();
  const auto at_work = std::count_if(runs_.begin(), runs_.end(), [&](const auto& entry) {
    const QueuedRun& run = entry.second;
    return IsAtWork(run) && run.priority >= first->priority;
  });
  return at_work < active_max ? Find(first->number) : nullptr;
}

std::vector<std::string> RunQueue::Waiting() const {
  std::vector<std::string> ids;
  for (const QueuedRun* run : InOrder()) ids.push_back(run->id);
  return ids;
}

}  // namespace evald
