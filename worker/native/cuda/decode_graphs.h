#pragma once

#include <cstdint>
#include <list>
#include <vector>

#include "worker/native/cuda/batch.h"
#include "worker/native/cuda/runtime.h"

namespace evald::native::cuda {

/// All that the operations of a padded batch depend on, beside memory that does not move.
struct GraphKey {
  int64_t rows = 0;            ///< padded
  std::vector<int64_t> items;  ///< of each window, padded
  bool operator==(const GraphKey&) const = default;
};
/// Only for a padded batch. The key has no rows if the batch cannot be replayed.
GraphKey KeyOf(const BatchPlan& plan);

/// Captured batches, the last used first; the least recently used are dropped. For one thread at a
/// time.
class DecodeGraphs {
 public:
  enum class Next { kRun, kCapture, kReplay };

  /// The next step for a batch: run it if its key is new, capture it the second time, then replay.
  Next See(const GraphKey& key);
  /// The graph belongs to the key that was seen last.
  void Put(Graph graph) { graphs_.front().graph = std::move(graph); }
  const Graph& graph() const { return graphs_.front().graph; }
  void Clear() { graphs_.clear(); }

  int64_t captured() const { return captured_; }
  int64_t replayed() const { return replayed_; }

 private:
  struct Entry {
    GraphKey key;
    Graph graph;
  };
  std::list<Entry> graphs_;
  int64_t captured_ = 0;
  int64_t replayed_ = 0;
};

}  // namespace evald::native::cuda
