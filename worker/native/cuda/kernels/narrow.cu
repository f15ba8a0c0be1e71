#include "worker/native/cuda/kernels.h"
#include "worker/native/cuda/kernels/device_code.cuh"

namespace evald::native::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kElements = 4;  // of a thread

template <typename T>
__global__ void NarrowKernel(float* x, const float* addend, int64_t count, T* out) {
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kElements;
  EVALD_UNROLL
  for (int i = 0; i < kElements; ++i) {
    if (first + i >= count) return;
    float value = x[first + i];
    if (addend != nullptr) x[first + i] = value += addend[first + i];
    out[first + i] = From<T>(value);
  }
}

}  // namespace

void Narrow(WeightType type, float* x, const float* addend, int64_t count, void* out,
            const Stream& stream) {
  if (count == 0) return;
  const dim3 grid(static_cast<unsigned>(DivideUp<int64_t>(count, kThreads * kElements)));
  switch (type) {
    case WeightType::kF32:
      EVALD_LAUNCH(NarrowKernel<float>, grid, kThreads, 0, stream, x, addend, count,
                   static_cast<float*>(out));
      return;
    case WeightType::kF16:
      EVALD_LAUNCH(NarrowKernel<F16>, grid, kThreads, 0, stream, x, addend, count,
                   static_cast<F16*>(out));
      return;
    case WeightType::kBF16:
      EVALD_LAUNCH(NarrowKernel<BF16>, grid, kThreads, 0, stream, x, addend, count,
                   static_cast<BF16*>(out));
      return;
  }
}

}  // namespace evald::native::cuda
