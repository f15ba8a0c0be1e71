#include "orchestrator/schedule/open_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "evald/error.h"

namespace evald {
namespace {

constexpr int64_t kChangesKept = 8192;

// A value that is not a number would spread into sums and orders, where its origin is lost.
void Check(const TaskEstimate& estimate) {
  const auto check = [&](const char* what, double value) {
    if (std::isfinite(value) && value >= 0) return;
    throw Error(ErrorKind::kInternal,
                fmt::format("estimate of task '{}': {} is {}, expected a finite number from 0 on",
                            estimate.name, what, value));
  };
  check("size", estimate.size);
  check("device_s", estimate.device_s);
  check("request_s", estimate.request_s);
  check("prefix_s", estimate.prefix_s);
  check("score_s", estimate.score_s);
}

}  // namespace

void OpenWork::Add(const TaskEstimate& estimate, std::vector<DocumentRange> open) {
  Check(estimate);
  Task task{estimate, std::move(open), 0};
  for (const DocumentRange& range : task.ranges) task.documents += range.size();
  std::reverse(task.ranges.begin(), task.ranges.end());
  tasks_.push_back(std::move(task));
  tree_.Append({});
  Changed(tasks_.size() - 1);
}

void OpenWork::Expect(size_t task, const TaskEstimate& estimate) {
  Check(estimate);
  tasks_.at(task).estimate = estimate;
  Changed(task);
}

void OpenWork::SetScoreSlots(int slots) {
  score_slots_ = slots;
  for (size_t task = 0; task < tasks_.size(); ++task) Changed(task);
}

std::vector<DocumentRange> OpenWork::Take(size_t task, int64_t documents) {
  Task& from = tasks_.at(task);
  std::vector<DocumentRange> taken;
  while (documents > 0 && !from.ranges.empty()) {
    DocumentRange& next = from.ranges.back();
    const int64_t count = std::min(documents, next.size());
    taken.push_back({next.first, next.first + count});
    next.first += count;
    documents -= count;
    from.documents -= count;
    if (next.size() == 0) from.ranges.pop_back();
  }
  Changed(task);
  return taken;
}

void OpenWork::PutBack(size_t task, const DocumentRange& range) {
  Task& to = tasks_.at(task);
  if (range.size() == 0) return;
  if (!to.ranges.empty() && to.ranges.back().first == range.end) {
    to.ranges.back().first = range.first;
  } else {
    to.ranges.push_back(range);
  }
  to.documents += range.size();
  Changed(task);
}

void OpenWork::Changed(size_t task) {
  const Task& of = tasks_[task];
  tree_.Set(task, {of.documents, static_cast<double>(of.documents) * of.estimate.device_s});
  // A policy that looks at each decision learns of each change. One that has not looked for very
  // long goes through all tasks.
  if (changed_.size() == kChangesKept) {
    changed_.erase(changed_.begin(), changed_.begin() + kChangesKept / 2);
    forgotten_ += kChangesKept / 2;
  }
  changed_.push_back(task);
}

std::optional<std::span<const size_t>> OpenWork::ChangedSince(int64_t revision) const {
  if (revision < forgotten_) return std::nullopt;
  return std::span(changed_).subspan(static_cast<size_t>(revision - forgotten_));
}

}  // namespace evald
