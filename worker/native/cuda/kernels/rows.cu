#include "worker/native/cuda/kernels.h"
#include "worker/native/cuda/kernels/elements.cuh"

namespace evald::native::cuda {
namespace {

template <typename T, bool kWhole>
__global__ void AddBiasKernel(T* y, const float* bias, int64_t width) {
  const auto [row, i] = PlaceOfThread(width);
  if (i >= width) return;
  const int n = VectorSize<kWhole>(i, width);
  float values[kVector], more[kVector];
  LoadVector<kWhole>(y + row * width, i, n, values);
  LoadVector<kWhole>(bias, i, n, more);
  for (int j = 0; j < kVector; ++j) values[j] += more[j];
  StoreVector<kWhole>(y + row * width, i, n, values);
}

// Each thread copies 16 bytes if kUnit is 16, otherwise 2.
template <int kUnit>
__global__ void GatherRowsKernel(const char* in, const int32_t* index, int64_t units, char* out,
                                 unsigned stretches) {
  const int64_t row = blockIdx.x / stretches;
  const int64_t i = blockIdx.x % stretches * int64_t{kThreads} + threadIdx.x;
  if (i >= units || index[row] < 0) return;
  const char* from = in + (index[row] * units + i) * kUnit;
  char* to = out + (row * units + i) * kUnit;
  if constexpr (kUnit == 16) {
    Store16(to, Load16(from));
  } else {
    *reinterpret_cast<uint16_t*>(to) = *reinterpret_cast<const uint16_t*>(from);
  }
}

}  // namespace

void AddBias(WeightType type, void* y, const float* bias, int64_t rows, int64_t width,
             const Stream& stream) {
  if (rows == 0) return;
  WithElement(type, [&]<typename T>() {
    const bool whole = WholeVectors(width, y, bias);
    const auto add_bias = whole ? &AddBiasKernel<T, true> : &AddBiasKernel<T, false>;
    EVALD_LAUNCH(add_bias, StretchBlocks(rows, width), kThreads, 0, stream, static_cast<T*>(y),
                 bias, width);
  });
}

void Add(float* x, const float* y, int64_t count, const Stream& stream) {
  if (count == 0) return;
  const bool whole = WholeVectors(count, x, y);
  const auto add = whole ? &AddBiasKernel<float, true> : &AddBiasKernel<float, false>;
  EVALD_LAUNCH(add, StretchBlocks(1, count), kThreads, 0, stream, x, y, count);
}

void GatherRows(const void* in, const int32_t* index, int64_t rows, int64_t bytes, void* out,
                const Stream& stream) {
  if (rows == 0 || bytes == 0) return;
  const bool whole = WholeVectors(bytes / 2, in, out);
  const int64_t units = bytes / (whole ? 16 : 2);
  const auto stretches = static_cast<unsigned>(DivideUp<int64_t>(units, kThreads));
  const auto gather_rows = whole ? &GatherRowsKernel<16> : &GatherRowsKernel<2>;
  EVALD_LAUNCH(gather_rows, static_cast<unsigned>(rows) * stretches, kThreads, 0, stream,
               static_cast<const char*>(in), index, units, static_cast<char*>(out), stretches);
}

}  // namespace evald::native::cuda
