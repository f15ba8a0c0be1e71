#include "orchestrator/service/run_queue.h"

#include <algorithm>

namespace evald {

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

std::vector<const QueuedRun*> RunQueue::InOrder() const {
  std::vector<const QueuedRun*> waiting;
  for (const auto& [number, run] : runs_) {
    if (!run.evaluation && !run.paused && run.state == "queued") waiting.push_back(&run);
  }
  std::stable_sort(waiting.begin(), waiting.end(),
                   [](const auto* a, const auto* b) { return a->priority > b->priority; });
  return waiting;
}

QueuedRun* RunQueue::Next(int active_max) {
  const auto waiting = InOrder();
  if (waiting.empty()) return nullptr;
  const QueuedRun* first = waiting.front();
  const auto at_work = std::count_if(runs_.begin(), runs_.end(), [&](const auto& entry) {
    const QueuedRun& run = entry.second;
    return run.evaluation && !run.paused && run.priority >= first->priority;
  });
  return at_work < active_max ? Find(first->number) : nullptr;
}

std::vector<std::string> RunQueue::Waiting() const {
  std::vector<std::string> ids;
  for (const QueuedRun* run : InOrder()) ids.push_back(run->id);
  return ids;
}

}  // namespace evald
