#include "worker/native/page_layout.h"

#include <algorithm>
#include <cmath>

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
  float* stored_value = page + values(layer, head) + slot * value_stride;
  if (!std::all_of(value, value + head_dim, [](float x) { return std::isfinite(x); })) {
    for (int64_t d = 0; d < head_dim; ++d) column[d * kKeyBlock] = NAN;
    std::fill_n(stored_value, head_dim, 0.0f);
    return;
  }
  for (int64_t d = 0; d < head_dim; ++d) column[d * kKeyBlock] = key[d];
  std::copy_n(value, head_dim, stored_value);
}

}  // namespace evald::native
