#include "worker/native/kv_cache.h"

#include <algorithm>
#include <utility>

#include "evald/error.h"

namespace evald::native {

PageLayout::PageLayout(const ModelConfig& config)
    : kv_heads(config.kv_heads),
      head_dim(config.head_dim),
      value_stride((config.head_dim + kKeyBlock - 1) / kKeyBlock * kKeyBlock),
      head_floats(kPagePositions * (head_dim + value_stride)),
      floats(config.layers * kv_heads * head_floats) {}

void PageLayout::Store(float* page, int64_t layer, int64_t head, int64_t slot, const float* key,
                       const float* value) const {
  float* column =
      page + keys(layer, head) + slot / kKeyBlock * head_dim * kKeyBlock + slot % kKeyBlock;
  for (int64_t d = 0; d < head_dim; ++d) column[d * kKeyBlock] = key[d];
  std::copy_n(value, head_dim, page + values(layer, head) + slot * value_stride);
}

KvCache::KvCache(const PageLayout& layout, uint64_t budget_bytes)
    : layout_(layout), capacity_(static_cast<int64_t>(budget_bytes / layout.bytes())) {}

PageRef KvCache::Allocate() {
  if (in_use_ >= capacity_) throw Error(ErrorKind::kInternal, "the key-value cache is overdrawn");
  Memory memory;
  if (free_.empty()) {
    memory.reset(new (kAlignment) float[static_cast<size_t>(layout_.floats)]());
  } else {
    memory = std::move(free_.back());
    free_.pop_back();
  }
  ++in_use_;
  const auto needed = static_cast<size_t>(in_use_) + free_.size();
  if (free_.capacity() < needed) free_.reserve(2 * needed);  // giving back must not throw
  return PageRef(memory.release(), [this](float* page) {
    --in_use_;
    free_.emplace_back(page);
  });
}

}  // namespace evald::native
