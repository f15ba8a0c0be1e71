#pragma once

#include "worker/native/cuda/attention.h"
#include "worker/native/cuda/attention_tiles.h"
#include "worker/native/cuda/kernels/device_code.cuh"

namespace evald::native::cuda {

/// AttendArgs in the form that the kernels use. Strides are in numbers of the type.
struct AttendView {
  const int32_t* positions;
  char* const* pages;
  const AttendItem* items;
  const int32_t* partials;
  const void* qkv;
  void* out;
  float* scratch;
  int64_t row_stride;      // of qkv
  int64_t keys_at;         // in a page, of the layer's first head
  int64_t values_at;       // in a page, of the layer's first head
  int64_t kv_head_stride;  // in a page
  int items_count, rows;
  int heads, kv_heads, group, head_dim;
  int query_stride;  // in a row of qkv, from a key-value head's first query to the next head's
  int window;        // 0: all
  float scale;       // of scores; includes log2(e), since weights are powers of two

  /// The first key that is seen from a position.
  __device__ int Hidden(int position) const {
    return window > 0 ? Max(position + 1 - window, 0) : 0;
  }
  __device__ int64_t QueryAt(int row, int kv_head, int head_of_group) const {
    return row * row_stride + static_cast<int64_t>(kv_head) * query_stride +
           static_cast<int64_t>(head_of_group) * head_dim;
  }
  /// The place of a row's result if it has one chunk only.
  __device__ int64_t OutAt(int row, int head) const {
    return (static_cast<int64_t>(row) * heads + head) * head_dim;
  }
  __device__ bool OneChunk(int row) const { return partials[row + 1] - partials[row] == 1; }
  /// The place of one chunk's result otherwise.
  __device__ float* Partial(int64_t index, int head) const {
    return scratch + (index * heads + head) * (head_dim + kPartialTail);
  }
  __device__ float* PartialOf(int row, int head, int chunk) const {
    const int first = Hidden(positions[row]) / static_cast<int>(kChunkPages * kPagePositions);
    return Partial(partials[row] + chunk - first, head);
  }
};

/// The scaled score that is subtracted from all scores: their top. Without scores 0, as exp2 of the
/// difference is zero then.
__device__ __forceinline__ float Shift(float top, float scale) {
  return top == -kInfinity ? 0.0f : top * scale;
}
/// The weight of a score. Written out, so that it is rounded alike in every place it is compiled.
__device__ __forceinline__ float Weight(float score, float scale, float shift) {
  return Exp2Of(fmaf(score, scale, -shift));
}
/// The factor for the sums so far at a new top. Exactly one if the top is the same: the rounding of
/// `shift` must not show in rows whose top stays, whatever the rows beside them do.
__device__ __forceinline__ float Factor(float old, float top, float scale, float shift) {
  return old == top ? 1.0f : Weight(old, scale, shift);
}

/// By tensor cores; head_dim is a multiple of 16 up to 256.
void AttendTilesBf16(const AttendView& view, const Stream& stream);
void AttendTilesF16(const AttendView& view, const Stream& stream);

}  // namespace evald::native::cuda
