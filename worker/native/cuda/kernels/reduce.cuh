#pragma once

#include "worker/native/cuda/kernels/device_code.cuh"
#include "worker/native/cuda/kernels/elements.cuh"

/// Sums and the like over the threads of a warp or a block, in one fixed order. All threads must
/// call them, all get the result. Blocks have whole warps. What works on a block ends with a
/// barrier, so that it can be called again at once.
namespace evald::native::cuda {

/// Over teams of `lanes` neighbours, a power of two up to kWarpLanes.
template <typename T>
__device__ inline T TeamSum(T value, int lanes) {
  for (int offset = lanes / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(kWarpMask, value, offset);
  }
  return value;
}

template <typename T>
__device__ inline T WarpSum(T value) {
  return TeamSum(value, kWarpLanes);
}

/// Each warp's sum, then the warps'.
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

/// A number and where it stands.
struct Candidate {
  float value;
  int place;
};

/// Whether `a` goes before `b`: NaN before all numbers, then the larger, of equals the first
/// (torch.argmax).
__device__ inline bool GoesBefore(Candidate a, Candidate b) {
  const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
  if (a_nan != b_nan) return a_nan;
  return a.value > b.value || ((a_nan || a.value == b.value) && a.place < b.place);
}

/// The one that goes before all others.
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

/// The sum over the lanes up to the calling one, and that one.
template <typename T>
__device__ inline T WarpPrefix(T value) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  for (int offset = 1; offset < kWarpLanes; offset *= 2) {
    const T other = __shfl_sync(kWarpMask, value, lane >= offset ? lane - offset : lane);
    if (lane >= offset) value += other;
  }
  return value;
}

/// The sum over the threads before the calling one. *total: over all.
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
