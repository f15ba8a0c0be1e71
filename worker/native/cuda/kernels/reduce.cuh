#pragma once

#include "worker/native/cuda/kernels/device_code.cuh"
#include "worker/native/cuda/kernels/elements.cuh"

/// Sums and similar results over the threads of a warp or a block, in one fixed order. All threads
/// must call these functions, and all get the result. Blocks have whole warps. Functions over a
/// block end with a barrier, so that they can be called again at once.
namespace evald::native::cuda {

/// The sum over teams of `lanes` neighbours; `lanes` is a power of two up to kWarpLanes.
template <typename T>
__device__ inline T TeamSum(T value, int lanes) {
  for (int offset = lanes / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(kWarpMask, value, offset);
  }
  return value;
}

/// Whether all lanes of the calling one's team say so.
__device__ inline bool TeamAll(bool value, int lanes) {
  const int first = static_cast<int>(threadIdx.x) % kWarpLanes / lanes * lanes;
  const uint32_t all = kWarpMask >> (kWarpLanes - lanes);
  return (__ballot_sync(kWarpMask, value) >> first & all) == all;
}

template <typename T>
__device__ inline T WarpSum(T value) {
  return TeamSum(value, kWarpLanes);
}

/// The sum of each warp, then the sum of the warps' sums.
template <typename T>
__device__ inline T BlockSum(T value) {
  __shared__ T sums[kWarpLanes];
  const unsigned lane = threadIdx.x % kWarpLanes, warp = threadIdx.x / kWarpLanes;
  value = WarpSum(value);
  if (lane == 0) sums[warp] = value;
  __syncthreads();
  value = WarpSum(lane < blockDim.x / kWarpLanes ? sums[lane] : T{0});
  __syncthreads();
  return value;
}

__device__ inline bool BlockAll(bool value) {
  __shared__ bool all[kWarpLanes];
  const unsigned lane = threadIdx.x % kWarpLanes, warp = threadIdx.x / kWarpLanes;
  value = __ballot_sync(kWarpMask, value) == kWarpMask;
  if (lane == 0) all[warp] = value;
  __syncthreads();
  value = __ballot_sync(kWarpMask, lane >= blockDim.x / kWarpLanes || all[lane]) == kWarpMask;
  __syncthreads();
  return value;
}

/// A number and its place.
struct Candidate {
  float value;
  int place;
};

/// Whether `a` goes before `b`: NaN before all numbers, then the larger number, of equals the first
/// (torch.argmax).
__device__ inline bool GoesBefore(Candidate a, Candidate b) {
  const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
  if (a_nan != b_nan) return a_nan;
  return a.value > b.value || ((a_nan || a.value == b.value) && a.place < b.place);
}

/// The candidate that goes before all others.
__device__ inline Candidate WarpLargest(Candidate mine) {
  for (int offset = kWarpLanes / 2; offset > 0; offset /= 2) {
    const float value = __shfl_xor_sync(kWarpMask, mine.value, offset);
    const int place = __shfl_xor_sync(kWarpMask, mine.place, offset);
    if (GoesBefore({value, place}, mine)) mine = {value, place};
  }
  return mine;
}

__device__ inline Candidate BlockLargest(Candidate mine) {
  __shared__ float values[kWarpLanes];
  __shared__ int places[kWarpLanes];
  const unsigned lane = threadIdx.x % kWarpLanes, warp = threadIdx.x / kWarpLanes;
  mine = WarpLargest(mine);
  if (lane == 0) {
    values[warp] = mine.value;
    places[warp] = mine.place;
  }
  __syncthreads();
  const unsigned from = lane < blockDim.x / kWarpLanes ? lane : 0;
  mine = WarpLargest({values[from], places[from]});
  __syncthreads();
  return mine;
}

/// The sum over the lanes up to and including the calling one.
template <typename T>
__device__ inline T WarpPrefix(T value) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  for (int offset = 1; offset < kWarpLanes; offset *= 2) {
    const T other = __shfl_sync(kWarpMask, value, lane >= offset ? lane - offset : lane);
    if (lane >= offset) value += other;
  }
  return value;
}

/// The sum over the threads before the calling one. *total: the sum over all threads.
__device__ inline unsigned long long BlockPrefix(unsigned long long value,
                                                 unsigned long long* total) {
  __shared__ unsigned long long sums[kWarpLanes];
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  const unsigned warp = threadIdx.x / kWarpLanes, warps = blockDim.x / kWarpLanes;
  const unsigned long long sum = WarpPrefix(value);
  if (lane == kWarpLanes - 1) sums[warp] = sum;
  __syncthreads();
  unsigned long long before = sum - value;
  *total = 0;
  for (unsigned w = 0; w < warps; ++w) {
    if (w < warp) before += sums[w];
    *total += sums[w];
  }
  __syncthreads();
  return before;
}

}  // namespace evald::native::cuda
