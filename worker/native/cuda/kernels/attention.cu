#include <string>

#include "worker/native/cuda/attention.h"
#include "worker/native/cuda/kernels/attention_args.cuh"

namespace evald::native::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kPlainDims = 16;  // dimensions of a head that each lane has
constexpr float kLog2E = 1.4426950408889634f;

// Computes one row of the batch, one head and one chunk, by one warp. Each lane takes one of 32
// keys at a time; then each lane takes some dimensions of the values. Keys and values that the row
// does not see are not read.
template <typename T>
__device__ void AttendRow(const AttendView& view, const AttendItem& item, int kv_head, int index) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  const int row = item.first + index / view.group;
  const int head = kv_head * view.group + index % view.group;
  const int position = view.positions[row];
  const int chunk_positions = static_cast<int>(kChunkPages * kPagePositions);
  const int first = Max(view.Hidden(position), item.chunk * chunk_positions);
  const int end = Min(position + 1, (item.chunk + 1) * chunk_positions);
  const T* query = static_cast<const T*>(view.qkv) + view.QueryAt(row, kv_head, index % view.group);
  float top = -kInfinity, total = 0;
  float sums[kPlainDims] = {};
  for (int base = first / kWarpLanes * kWarpLanes; base < end; base += kWarpLanes) {
    const T* page = reinterpret_cast<const T*>(view.pages[item.table + base / kPagePositions]) +
                    kv_head * view.kv_head_stride;
    const int slot = base % kPagePositions;
    const bool seen = base + lane >= first && base + lane < end;
    float score = -kInfinity;
    if (seen) {
      const T* key = page + view.keys_at + static_cast<int64_t>(slot + lane) * view.head_dim;
      score = 0;
      for (int d = 0; d < view.head_dim; ++d) {
        score = fmaf(ToFloat(query[d]), ToFloat(key[d]), score);
      }
    }
    const float old = top;
    top = fmaxf(top, score);
    for (int step = 16; step > 0; step /= 2) {
      top = fmaxf(top, __shfl_xor_sync(kWarpMask, top, step));
    }
    const float shift = Shift(top, view.scale);
    const float factor = Factor(old, top, view.scale, shift);
    const float weight = Weight(score, view.scale, shift);
    float sum = weight;
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(kWarpMask, sum, step);
    total = fmaf(total, factor, sum);
    EVALD_UNROLL
    for (int i = 0; i < kPlainDims; ++i) sums[i] *= factor;
    const T* values = page + view.values_at + static_cast<int64_t>(slot) * view.head_dim;
    for (int k = Max(first - base, 0); k < Min(end - base, kWarpLanes); ++k) {
      const float share = __shfl_sync(kWarpMask, weight, k);
      EVALD_UNROLL
      for (int i = 0; i < kPlainDims; ++i) {
        const int d = i * kWarpLanes + lane;
        if (d < view.head_dim) {
          sums[i] =
              fmaf(share, ToFloat(values[static_cast<int64_t>(k) * view.head_dim + d]), sums[i]);
        }
      }
    }
  }
  const bool one = view.OneChunk(row);
  T* out = static_cast<T*>(view.out) + view.OutAt(row, head);
  float* partial = one ? nullptr : view.PartialOf(row, head, item.chunk);
  const float share = 1.0f / total;
  EVALD_UNROLL
  for (int i = 0; i < kPlainDims; ++i) {
    const int d = i * kWarpLanes + lane;
    if (d >= view.head_dim) continue;
    if (one) {
      out[d] = From<T>(sums[i] * share);
    } else {
      partial[d] = sums[i];
    }
  }
  if (!one && lane == 0) {
    partial[view.head_dim] = top;
    partial[view.head_dim + 1] = total;
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads) AttendPlainly(const AttendView view) {
  const int units = view.items_count * view.kv_heads;
  const int warp = static_cast<int>(threadIdx.x) / kWarpLanes;
  for (int unit = static_cast<int>(blockIdx.x); unit < units; unit += static_cast<int>(gridDim.x)) {
    const AttendItem item = view.items[unit / view.kv_heads];
    if (item.count == 0) break;  // only padding follows
    for (int index = warp; index < item.count * view.group; index += kThreads / kWarpLanes) {
      AttendRow<T>(view, item, unit % view.kv_heads, index);
    }
  }
}

// Adds up the partial results of rows with more than one chunk, in the chunks' order. One warp per
// row and head, so that even in batches of few rows enough warps wait for memory at once. A lane
// has up to kDims dimensions, and reads those of a chunk at once. `blocks` is the number of blocks
// per row.
template <typename T, int kDims>
__global__ void __launch_bounds__(kThreads) JoinChunks(const AttendView view, int blocks) {
  const int row = static_cast<int>(blockIdx.x) / blocks;
  if (view.positions[row] < 0 || view.OneChunk(row)) return;
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  const int head = static_cast<int>(blockIdx.x) % blocks * (kThreads / kWarpLanes) +
                   static_cast<int>(threadIdx.x) / kWarpLanes;
  if (head >= view.heads) return;
  const int first = view.partials[row], end = view.partials[row + 1];
  float top = -kInfinity;
  for (int i = first + lane; i < end; i += kWarpLanes) {
    top = fmaxf(top, view.Partial(i, head)[view.head_dim]);
  }
  for (int step = 16; step > 0; step /= 2) {
    top = fmaxf(top, __shfl_xor_sync(kWarpMask, top, step));
  }
  const float shift = Shift(top, view.scale);
  float sums[kDims] = {}, total = 0;
  for (int i = first; i < end; ++i) {
    const float* partial = view.Partial(i, head);
    float numbers[kDims];
    EVALD_UNROLL
    for (int k = 0; k < kDims; ++k) {
      const int d = k * kWarpLanes + lane;
      numbers[k] = d < view.head_dim ? partial[d] : 0;
    }
    const float weight = Weight(partial[view.head_dim], view.scale, shift);
    total = fmaf(weight, partial[view.head_dim + 1], total);
    EVALD_UNROLL
    for (int k = 0; k < kDims; ++k) sums[k] = fmaf(weight, numbers[k], sums[k]);
  }
  T* out = static_cast<T*>(view.out) + view.OutAt(row, head);
  const float share = 1.0f / total;
  EVALD_UNROLL
  for (int k = 0; k < kDims; ++k) {
    const int d = k * kWarpLanes + lane;
    if (d < view.head_dim) out[d] = From<T>(sums[k] * share);
  }
}

AttendView ViewOf(const AttendArgs& args) {
  const KvLayout& kv = args.kv;
  AttendView view{};
  view.positions = args.batch.positions;
  view.pages = args.batch.pages;
  view.items = args.items;
  view.partials = args.partials;
  view.qkv = args.qkv;
  view.out = args.out;
  view.scratch = static_cast<float*>(args.scratch);
  view.row_stride = (args.heads + 2 * kv.kv_heads) * kv.head_dim;
  view.kv_head_stride = kPagePositions * kv.head_dim;
  view.keys_at = args.layer * 2 * kv.kv_heads * view.kv_head_stride;
  view.values_at = view.keys_at + kv.kv_heads * view.kv_head_stride;
  view.items_count = static_cast<int>(args.item_count);
  view.rows = static_cast<int>(args.batch.rows);
  view.heads = static_cast<int>(args.heads);
  view.kv_heads = static_cast<int>(kv.kv_heads);
  view.group = view.heads / view.kv_heads;
  view.head_dim = static_cast<int>(kv.head_dim);
  view.query_stride = (view.group + (args.packed ? 2 : 0)) * view.head_dim;
  view.window = static_cast<int>(args.window);
  view.scale = args.scale * kLog2E;
  return view;
}

template <typename T>
void QueuePlainly(const AttendView& view, const Stream& stream) {
  if (view.head_dim > kPlainDims * kWarpLanes) {
    throw Error(ErrorKind::kInternal, "attention: heads of " + std::to_string(view.head_dim) +
                                          " dimensions, 512 is the most");
  }
  const unsigned blocks = static_cast<unsigned>(view.items_count * view.kv_heads);
  EVALD_LAUNCH(AttendPlainly<T>, blocks, kThreads, 0, stream, view);
}

template <typename T, int kDims>
void QueueJoinOf(const AttendView& view, const Stream& stream) {
  const int blocks = DivideUp(view.heads, kThreads / kWarpLanes);  // per row
  EVALD_LAUNCH((JoinChunks<T, kDims>), static_cast<unsigned>(view.rows * blocks), kThreads, 0,
               stream, view, blocks);
}

template <typename T>
void QueueJoin(const AttendView& view, const Stream& stream) {
  view.head_dim <= 4 * kWarpLanes ? QueueJoinOf<T, 4>(view, stream)
                                  : QueueJoinOf<T, kPlainDims>(view, stream);
}

}  // namespace

void Attend(const AttendArgs& args, const Stream& stream) {
  if (args.item_count == 0 || args.batch.rows == 0) return;
  const AttendView view = ViewOf(args);
  const bool tiles = view.head_dim % 16 == 0 && view.head_dim <= 256;
  switch (args.kv.type) {
    case WeightType::kF32:
      QueuePlainly<float>(view, stream);
      return QueueJoin<float>(view, stream);
    case WeightType::kF16:
      tiles ? AttendTilesF16(view, stream) : QueuePlainly<F16>(view, stream);
      return QueueJoin<F16>(view, stream);
    case WeightType::kBF16:
      tiles ? AttendTilesBf16(view, stream) : QueuePlainly<BF16>(view, stream);
      return QueueJoin<BF16>(view, stream);
  }
}

}  // namespace evald::native::cuda
