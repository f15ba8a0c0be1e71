#include "worker/native/cuda/kernels.h"
#include "worker/native/cuda/kernels/elements.cuh"
#include "worker/native/cuda/kernels/reduce.cuh"

namespace evald::native::cuda {
namespace {

constexpr int kWarps = kThreads / kWarpLanes;

// The choices [first, end) that the calling warp looks at.
struct Stretch {
  int first, end;
};
__device__ inline Stretch StretchOfWarp(int choices, int warp) {
  const int each = DivideUp(choices, kWarps * kWarpLanes) * kWarpLanes;
  return {Min(warp * each, choices), Min((warp + 1) * each, choices)};
}

// One block per expert. The block counts the choices of its expert and of all experts before it, so
// that no block waits for another. Then its warps number the expert's choices, in order.
__global__ void __launch_bounds__(kThreads) GroupKernel(GroupArgs args) {
  __shared__ int own[kWarps];
  const int mine = static_cast<int>(blockIdx.x);
  const int warp = static_cast<int>(threadIdx.x) / kWarpLanes;
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  const auto per_token = static_cast<int>(args.per_token);
  const auto choices = static_cast<int>(args.rows) * per_token;
  const auto [first, end] = StretchOfWarp(choices, warp);
  int equal = 0, less = 0;
  for (int i = first + lane; i < end; i += kWarpLanes) {
    equal += args.expert[i] == mine ? 1 : 0;
    less += args.expert[i] < mine ? 1 : 0;
  }
  equal = WarpSum(equal);
  if (lane == 0) own[warp] = equal;
  int slot = BlockSum(less);
  if (threadIdx.x == 0) {
    args.begin[mine] = slot;
    if (mine + 1 == static_cast<int>(args.experts)) args.begin[mine + 1] = choices;
  }
  for (int i = 0; i < warp; ++i) slot += own[i];
  for (int base = first; base < end; base += kWarpLanes) {
    const int i = base + lane;
    const bool chosen = i < end && args.expert[i] == mine;
    const uint32_t all = __ballot_sync(kWarpMask, chosen);
    if (chosen) {
      const int to = slot + __popc(all & ((1u << lane) - 1));
      args.row[to] = i / per_token;
      args.slot[i] = to;
    }
    slot += __popc(all);
  }
}

// Sums a row in the order in which its experts were chosen.
template <bool kWhole>
__global__ void CombineKernel(CombineArgs args) {
  const auto [row, i] = PlaceOfThread(args.width);
  if (i >= args.width) return;
  const int n = VectorSize<kWhole>(i, args.width);
  float sum[kVector] = {};
  for (int64_t choice = row * args.per_token; choice < (row + 1) * args.per_token; ++choice) {
    const float factor = args.weight[choice];
    float values[kVector];
    LoadVector<kWhole>(args.in + args.slot[choice] * args.width, i, n, values);
    for (int j = 0; j < kVector; ++j) sum[j] = fmaf(factor, values[j], sum[j]);
  }
  StoreVector<kWhole>(args.out + row * args.width, i, n, sum);
}

}  // namespace

void GroupByExpert(const GroupArgs& args, const Stream& stream) {
  if (args.rows == 0) return;
  EVALD_LAUNCH(GroupKernel, static_cast<unsigned>(args.experts), kThreads, 0, stream, args);
}

void Combine(const CombineArgs& args, const Stream& stream) {
  if (args.rows == 0) return;
  const bool whole = WholeVectors(args.width, args.in, args.out);
  const auto combine = whole ? &CombineKernel<true> : &CombineKernel<false>;
  EVALD_LAUNCH(combine, StretchBlocks(args.rows, args.width), kThreads, 0, stream, args);
}

}  // namespace evald::native::cuda
