#pragma once

#include <cstdint>

#include "worker/native/config.h"
#include "worker/native/kernels.h"

namespace evald::native {

/// The layout of keys and values in a page on the CPU: kPagePositions positions of all layers and
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

  /// Stores one head's key and value ([head_dim]) at a page's `slot`. A value that is not finite
  /// becomes zeros, its key NaN: see Device::StoreKeysAndValues.
  void Store(float* page, int64_t layer, int64_t head, int64_t slot, const float* key,
             const float* value) const;
};

}  // namespace evald::native
