#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "worker/native/cuda/runtime.h"

/// device_code.cuh for nvcc, sm_80 and up.

#define EVALD_DYNAMIC_SHARED(name) extern __shared__ __align__(16) char name[]
#define EVALD_UNROLL _Pragma("unroll")
#define EVALD_NO_UNROLL _Pragma("unroll 1")

namespace evald::native::cuda {

using F16 = __half;
using BF16 = __nv_bfloat16;

__device__ __forceinline__ float ToFloat(float x) { return x; }
__device__ __forceinline__ float ToFloat(F16 x) { return __half2float(x); }
__device__ __forceinline__ float ToFloat(BF16 x) { return __bfloat162float(x); }

template <typename T>
__device__ __forceinline__ T From(float x);
template <>
__device__ __forceinline__ float From<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ F16 From<F16>(float x) {
  return __float2half_rn(x);
}
template <>
__device__ __forceinline__ BF16 From<BF16>(float x) {
  return __float2bfloat16_rn(x);
}

template <typename T>
__device__ __forceinline__ uint32_t Pack2(float low, float high);
template <>
__device__ __forceinline__ uint32_t Pack2<BF16>(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
template <>
__device__ __forceinline__ uint32_t Pack2<F16>(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
template <typename T>
__device__ __forceinline__ float Unpack(uint32_t pair, int which);
template <>
__device__ __forceinline__ float Unpack<BF16>(uint32_t pair, int which) {
  return __uint_as_float(which == 0 ? pair << 16 : pair & 0xFFFF0000u);
}
template <>
__device__ __forceinline__ float Unpack<F16>(uint32_t pair, int which) {
  return __half2float(
      __ushort_as_half(static_cast<unsigned short>(which == 0 ? pair : pair >> 16)));
}

__device__ __forceinline__ float ExpOf(float x) { return expf(x); }
__device__ __forceinline__ double ExpOf(double x) { return exp(x); }
__device__ __forceinline__ float Exp2Of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float LogOf(float x) { return logf(x); }
__device__ __forceinline__ double LogOf(double x) { return log(x); }
__device__ __forceinline__ float SqrtOf(float x) { return sqrtf(x); }
__device__ __forceinline__ float RsqrtOf(float x) { return rsqrtf(x); }
__device__ __forceinline__ float TanhOf(float x) { return tanhf(x); }
__device__ __forceinline__ float ErfOf(float x) { return erff(x); }

__device__ __forceinline__ uint4 Load16(const void* from) {
  return *static_cast<const uint4*>(from);
}
__device__ __forceinline__ void Store16(void* to, uint4 value) { *static_cast<uint4*>(to) = value; }

__device__ __forceinline__ uint32_t SharedAddress(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ __forceinline__ void CopyAsync16(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(SharedAddress(to)), "l"(from)
               : "memory");
}
__device__ __forceinline__ void CopyAsync16OrZero(void* to, const void* from, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(SharedAddress(to)), "l"(from),
               "r"(valid ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void CopyAsyncCommit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int kLeft>
__device__ __forceinline__ void CopyAsyncWait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

__device__ __forceinline__ void LoadMatrix4(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(SharedAddress(row))
               : "memory");
}
__device__ __forceinline__ void LoadMatrix4Transposed(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(SharedAddress(row))
               : "memory");
}

template <typename T>
__device__ __forceinline__ void MmaM16N8K16(float (&d)[4], const uint32_t (&a)[4],
                                            const uint32_t (&b)[2]);
template <>
__device__ __forceinline__ void MmaM16N8K16<BF16>(float (&d)[4], const uint32_t (&a)[4],
                                                  const uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
template <>
__device__ __forceinline__ void MmaM16N8K16<F16>(float (&d)[4], const uint32_t (&a)[4],
                                                 const uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// Throws DeviceError if a launch was refused. If the kernel itself fails, a later Synchronize
/// throws.
inline void CheckLaunch(const char* kernel, cudaError_t error) {
  if (error == cudaSuccess) return;
  // Clears an error that is not sticky, so that no later launch is blamed for it
  cudaGetLastError();
  DeviceFault fault = DeviceFault::kKernel;
  if (error == cudaErrorMemoryAllocation) fault = DeviceFault::kOutOfMemory;
  if (error == cudaErrorDevicesUnavailable) fault = DeviceFault::kLost;
  if (error == cudaErrorECCUncorrectable) fault = DeviceFault::kMemory;
  if (error == cudaErrorInvalidConfiguration || error == cudaErrorInvalidValue ||
      error == cudaErrorNoKernelImageForDevice || error == cudaErrorLaunchOutOfResources) {
    fault = DeviceFault::kOther;
  }
  if (error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorStreamCaptureWrongThread) {
    fault = DeviceFault::kOther;  // the capture failed, not the device
  }
  throw DeviceError(fault, std::string("kernel ") + kernel + ": " + cudaGetErrorString(error));
}

/// Allows the kernel this much dynamic shared memory.
template <typename Kernel>
void AllowShared(const char* name, Kernel* kernel, size_t shared_bytes) {
  constexpr size_t kUnasked = size_t{48} << 10;  // more has to be requested
  if (shared_bytes <= kUnasked) return;
  CheckLaunch(name, cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                         cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(shared_bytes)));
}

/// The number of such blocks that the current device can hold at once.
template <typename... Parameters>
int BlocksAtOnce(const char* name, void (*kernel)(Parameters...), int threads,
                 size_t shared_bytes) {
  AllowShared(name, kernel, shared_bytes);
  int device = 0, processors = 0, blocks = 0;
  CheckLaunch(name, cudaGetDevice(&device));
  CheckLaunch(name, cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  CheckLaunch(
      name, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared_bytes));
  return blocks * processors > 0 ? blocks * processors : 1;
}

/// See EVALD_LAUNCH.
template <typename... Parameters, typename... Arguments>
void Launch(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block,
            size_t shared_bytes, const Stream& stream, Arguments... arguments) {
  AllowShared(name, kernel, shared_bytes);
  kernel<<<grid, block, shared_bytes, static_cast<cudaStream_t>(stream.handle())>>>(
      static_cast<Parameters>(arguments)...);
  CheckLaunch(name, cudaGetLastError());
}

}  // namespace evald::native::cuda
