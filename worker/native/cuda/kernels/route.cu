#include "worker/native/cuda/kernels.h"
#include "worker/native/cuda/kernels/elements.cuh"
#include "worker/native/cuda/kernels/reduce.cuh"

namespace evald::native::cuda {
namespace {

// One warp per row. The logits lie in shared memory; chosen ones become -infinity there. Each lane
// looks at its own logits only.
template <typename T>
__global__ void RouteKernel(RouteArgs args) {
  EVALD_DYNAMIC_SHARED(shared);
  auto* left = reinterpret_cast<float*>(shared);
  const int experts = static_cast<int>(args.experts), chosen = static_cast<int>(args.per_token);
  const int lane = static_cast<int>(threadIdx.x);
  const T* logits = static_cast<const T*>(args.logits) + blockIdx.x * args.experts;
  int32_t* expert = args.expert + blockIdx.x * args.per_token;
  float* weight = args.weight + blockIdx.x * args.per_token;
  bool finite = true;
  for (int e = lane; e < experts; e += kWarpLanes) {
    left[e] = ToFloat(logits[e]);
    finite = finite && fabsf(left[e]) < kInfinity;
  }
  if (__ballot_sync(kWarpMask, finite) != kWarpMask) {
    for (int i = lane; i < chosen; i += kWarpLanes) {
      expert[i] = i;
      weight[i] = NAN;
    }
    return;
  }
  float top = 0, total = 0, kept = 0;
  for (int i = 0; i < chosen; ++i) {
    Candidate mine{-kInfinity, experts};
    for (int e = lane; e < experts; e += kWarpLanes) {
      if (left[e] > mine.value) mine = {left[e], e};
    }
    const Candidate best = WarpLargest(mine);
    if (i == 0) {
      top = best.value;
      for (int e = lane; e < experts; e += kWarpLanes) total += ExpOf(left[e] - top);
      total = WarpSum(total);
    }
    const float share = ExpOf(best.value - top) / total;
    kept += share;
    if (lane == 0) {
      expert[i] = best.place;
      weight[i] = share;
    }
    if (lane == best.place % kWarpLanes) left[best.place] = -kInfinity;
  }
  if (args.normalize && lane == 0) {
    for (int i = 0; i < chosen; ++i) weight[i] /= kept;
  }
}

}  // namespace

void Route(const RouteArgs& args, const Stream& stream) {
  if (args.rows == 0) return;
  WithElement(args.type, [&]<typename T>() {
    EVALD_LAUNCH((RouteKernel<T>), static_cast<unsigned>(args.rows), kWarpLanes,
                 static_cast<unsigned>(args.experts) * sizeof(float), stream, args);
  });
}

}  // namespace evald::native::cuda
