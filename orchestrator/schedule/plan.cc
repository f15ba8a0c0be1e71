#include "orchestrator/schedule/plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace evald {
namespace {

double OpenCost(const PlanTask& task) {
  double documents = 0;
  for (const DocumentRange& range : task.open) documents += static_cast<double>(range.size());
  return documents * task.cost_per_document;
}

std::vector<size_t> OrderOf(const std::vector<PlanTask>& tasks) {
  std::vector<size_t> order(tasks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (tasks[a].slow_scoring != tasks[b].slow_scoring) return tasks[a].slow_scoring;
    return OpenCost(tasks[a]) > OpenCost(tasks[b]);
  });
  return order;
}

// The share of a whole trial that the next one takes. What takes long to score is begun with small
// trials that double, so that the metric processes need not wait for a whole one.
double RampShare(size_t trials, int workers) {
  constexpr int kDoublings = 3;
  const size_t step = trials / static_cast<size_t>(std::max(1, workers));
  return std::exp2(std::min(0, static_cast<int>(std::min<size_t>(step, kDoublings)) - kDoublings));
}

}  // namespace

std::vector<PlanTrial> PlanTrials(const std::vector<PlanTask>& tasks, const PlanOptions& options) {
  double total = 0;
  for (const PlanTask& task : tasks) total += OpenCost(task);
  const double whole = total / std::max(1, options.workers * options.trials_per_worker);

  std::vector<PlanTrial> trials;
  PlanTrial open;
  const auto close = [&] {
    if (!open.slices.empty()) trials.push_back(std::move(open));
    open = PlanTrial{};
  };
  const auto holds = [&](size_t index) {
    return std::any_of(open.slices.begin(), open.slices.end(),
                       [&](const PlanSlice& slice) { return slice.task == index; });
  };
  for (const size_t index : OrderOf(tasks)) {
    const PlanTask& task = tasks[index];
    const double each = std::max(task.cost_per_document, 1e-9);
    for (DocumentRange rest : task.open) {
      while (rest.size() > 0) {
        if (holds(index)) close();
        const double target = whole * (task.slow_scoring ? RampShare(trials.size(), options.workers) : 1);
        const auto fitting = static_cast<int64_t>(std::floor((target - open.cost) / each));
        const int64_t count = std::clamp<int64_t>(
            fitting, 1, std::min(rest.size(), options.documents_per_slice_max));
        open.slices.push_back({index, {rest.first, rest.first + count}});
        open.cost += each * static_cast<double>(count);
        rest.first += count;
        if (open.cost + each > target) close();
      }
    }
  }
  close();
  return trials;
}

}  // namespace evald
