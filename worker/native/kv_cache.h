#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/native/aligned.h"
#include "worker/native/config.h"
#include "worker/native/kernels.h"

namespace evald::native {

/// Where keys and values lie in a page. One page holds kPagePositions positions of all layers and
/// key-value heads, in fp32.
struct PageLayout {
  PageLayout() = default;
  explicit PageLayout(const ModelConfig& config);

  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t value_stride = 0;  ///< head_dim rounded up to kKeyBlock
  int64_t head_floats = 0;   ///< keys and values of one layer and head
  int64_t floats = 0;        ///< of the whole page

  int64_t keys(int64_t layer, int64_t head) const {
    return (layer * kv_heads + head) * head_floats;
  }
  int64_t values(int64_t layer, int64_t head) const {
    return keys(layer, head) + kPagePositions * head_dim;
  }
  uint64_t bytes() const { return static_cast<uint64_t>(floats) * sizeof(float); }

  /// Stores one head's key and value ([head_dim]) at a page's `slot`.
  void Store(float* page, int64_t layer, int64_t head, int64_t slot, const float* key,
             const float* value) const;
};

/// One page's memory, shared by all sequences that have these positions in common. A page that more
/// than one sequence holds is only read.
using PageRef = std::shared_ptr<float>;

/// Pages of keys and values up to a budget. Memory is taken when a page is first used and kept for
/// later ones. One thread at a time. Must outlive its pages.
class KvCache {
 public:
  KvCache(const PageLayout& layout, uint64_t budget_bytes);
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  /// A page with unspecified finite content. Must not be called when none is free.
  PageRef Allocate();
  int64_t capacity() const { return capacity_; }  ///< pages
  int64_t in_use() const { return in_use_; }
  const PageLayout& layout() const { return layout_; }

 private:
  struct Free {
    void operator()(float* page) const { ::operator delete[](page, kAlignment); }
  };
  using Memory = std::unique_ptr<float[], Free>;

  PageLayout layout_;
  int64_t capacity_ = 0;
  int64_t in_use_ = 0;
  std::vector<Memory> free_;
};

/// Pages needed for so many positions.
inline int64_t PagesFor(int64_t positions) {
  return (positions + kPagePositions - 1) / kPagePositions;
}

}  // namespace evald::native
