#pragma once

/// The language of device code, under nvcc and, with EVALD_EMULATED, under a C++ compiler that
/// makes it run on the CPU (emulated/device.h). Kernels use nothing else of CUDA.
///
/// As in CUDA; all lanes of a mask must come to the same call:
///   __global__ __device__ __host__ __forceinline__ __launch_bounds__ __constant__ __shared__
///   threadIdx blockIdx blockDim gridDim dim3 uint4
///   __syncthreads __syncwarp __shfl_sync __shfl_xor_sync __shfl_down_sync __shfl_up_sync
///   __ballot_sync __any_sync __all_sync atomicAdd atomicMax
///   __popc __ffs __clz __float_as_uint __uint_as_float
///
/// EVALD_DYNAMIC_SHARED(name);
///   char* name: the block's dynamic shared memory, on 16 bytes.
/// EVALD_UNROLL, EVALD_NO_UNROLL
///   Before a loop.
/// EVALD_LAUNCH(kernel, grid, block, shared_bytes, stream, arguments…)
///   Queues a kernel; a template's name in parentheses. Throws DeviceError.
/// int BlocksAtOnce(name, kernel, threads, shared_bytes)
///   The number of such blocks that the device can hold at once.
///
/// F16, BF16: numbers of 16 bits. float ToFloat(x), T From<T>(float), uint32_t Pack2<T>(low, high)
///   and float Unpack<T>(pair, 0 or 1) round to nearest even.
/// ExpOf, LogOf (float and double), SqrtOf, RsqrtOf, TanhOf, ErfOf (float)
///   To a few units in the last place. Exp2Of(float), 2^x, by the special function unit: to two.
/// uint4 Load16(from), Store16(to, uint4)
///   On 16 bytes.
/// Min, Max, DivideUp (of one type), kInfinity, kWarpLanes, kWarpMask
///
/// CopyAsync16(shared, global), CopyAsync16OrZero(shared, global, valid), CopyAsyncCommit(),
/// CopyAsyncWait<groups that may be left>()
///   cp.async. Others see the data after the wait and a barrier.
/// LoadMatrix4(uint32_t r[4], row), LoadMatrix4Transposed
///   ldmatrix: `row` of lane i is row i % 8 of matrix i / 8.
/// MmaM16N8K16<T>(float d[4], uint32_t a[4], uint32_t b[2])
///   d += a · b with fp32 sums.
#ifdef EVALD_EMULATED
#include "worker/native/cuda/emulated/device_code.h"
#else
#include "worker/native/cuda/kernels/nvidia.cuh"
#endif

namespace evald::native::cuda {

inline constexpr int kWarpLanes = 32;
inline constexpr uint32_t kWarpMask = 0xFFFFFFFF;
inline constexpr float kInfinity = __builtin_huge_valf();

template <typename T>
__host__ __device__ constexpr T Min(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
__host__ __device__ constexpr T Max(T a, T b) {
  return a < b ? b : a;
}
template <typename T>
__host__ __device__ constexpr T DivideUp(T a, T b) {
  return (a + b - 1) / b;
}

}  // namespace evald::native::cuda

#define EVALD_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)        \
  ::evald::native::cuda::Launch(#kernel, kernel, grid, block, shared_bytes, \
                                stream __VA_OPT__(, ) __VA_ARGS__)
