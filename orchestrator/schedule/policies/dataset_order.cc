#include "orchestrator/schedule/policies/dataset_order.h"

namespace evald {

std::vector<Cut> NextDataset(const OpenWork& work) {
  std::vector<Cut> cuts;
  for (size_t task = work.FirstOpen(0); task < work.tasks(); task = work.FirstOpen(task + 1)) {
    if (!cuts.empty() && work.estimate(task).dataset != work.estimate(cuts.front().task).dataset)
      break;
    cuts.push_back({task, work.open(task)});
  }
  return cuts;
}

}  // namespace evald
