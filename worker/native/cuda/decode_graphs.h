#pragma once

#include <cstdint>
#include <list>
#include <vector>

#include "worker/native/cuda/batch.h"
#include "worker/native/cuda/runtime.h"

namespace evald::native::cuda {

/// What the operations of a padded batch depend on beside memory that stays where it is.
struct GraphKey {
  int64_t rows = 0;            ///< padded
  std::vector<int64_t> items;  ///< of each window, padded
  bool operator==(const GraphKey&) const = default;
};
/// Only of a batch that was padded. Without rows where it cannot be replayed.
GraphKey KeyOf(const BatchPlan& plan);

/// Captured batches, the last used first; the least used go. One thread at a time.
class DecodeGraphs {
 public:
  enum class Next { kRun, kCapture, kReplay };

  /// What to do with a batch: run it when its key is new, capture it the second time, then replay.
  Next See(const GraphKey& key);
  /// Of the key that was seen last.
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
