#include "orchestrator/schedule/open_work.h"

#include <algorithm>

namespace evald {

double OpenWork::CostOf(const Task& task) const {
  return static_cast<double>(task.documents) * task.estimate.device_s;
}

void OpenWork::Add(const TaskEstimate& estimate, std::vector<DocumentRange> open) {
  Task task{estimate, std::move(open), 0};
  for (const DocumentRange& range : task.ranges) task.documents += range.size();
  std::reverse(task.ranges.begin(), task.ranges.end());
  documents_ += task.documents;
  device_s_ += CostOf(task);
  tasks_.push_back(std::move(task));
  ++revision_;
}

void OpenWork::Expect(size_t task, const TaskEstimate& estimate) {
  Task& changed = tasks_.at(task);
  device_s_ -= CostOf(changed);
  changed.estimate = estimate;
  device_s_ += CostOf(changed);
  ++revision_;
}

std::vector<DocumentRange> OpenWork::Take(size_t task, int64_t documents) {
  Task& from = tasks_.at(task);
  std::vector<DocumentRange> taken;
  device_s_ -= CostOf(from);
  while (documents > 0 && !from.ranges.empty()) {
    DocumentRange& next = from.ranges.back();
    const int64_t count = std::min(documents, next.size());
    taken.push_back({next.first, next.first + count});
    next.first += count;
    documents -= count;
    from.documents -= count;
    documents_ -= count;
    if (next.size() == 0) from.ranges.pop_back();
  }
  device_s_ += CostOf(from);
  if (documents_ == 0) device_s_ = 0;  // rather than what rounding has left
  return taken;
}

void OpenWork::PutBack(size_t task, const DocumentRange& range) {
  Task& to = tasks_.at(task);
  device_s_ -= CostOf(to);
  ++revision_;
  to.ranges.push_back(range);
  to.documents += range.size();
  documents_ += range.size();
  device_s_ += CostOf(to);
}

}  // namespace evald
