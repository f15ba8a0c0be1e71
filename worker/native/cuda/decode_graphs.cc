#include "worker/native/cuda/decode_graphs.h"

#include <algorithm>
#include <utility>

namespace evald::native::cuda {
namespace {

constexpr size_t kGraphsMax = 96;  // each takes some megabytes

}  // namespace

GraphKey KeyOf(const BatchPlan& plan) {
  GraphKey key;
  for (const RowSet::Windowed& windowed : plan.all().attention) {
    if (windowed.parts.size() != 1) return {};
    key.items.push_back(windowed.parts.front().items);
  }
  key.rows = plan.all().padded;
  return key;
}

DecodeGraphs::Next DecodeGraphs::See(const GraphKey& key) {
  const auto found = std::find_if(graphs_.begin(), graphs_.end(),
                                  [&](const Entry& entry) { return entry.key == key; });
  if (found == graphs_.end()) {
    if (graphs_.size() == kGraphsMax) graphs_.pop_back();
    graphs_.push_front({key, Graph()});
    return Next::kRun;
  }
  graphs_.splice(graphs_.begin(), graphs_, found);
  if (graphs_.front().graph.empty()) {
    ++captured_;
    return Next::kCapture;
  }
  ++replayed_;
  return Next::kReplay;
}

}  // namespace evald::native::cuda
