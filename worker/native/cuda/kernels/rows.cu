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

// `out` has rows of `width`, `row` says which one each of `in` is added to.
template <typename T, bool kWhole>
__global__ void AddWeightedKernel(const T* in, const int32_t* row, const float* weight,
                                  int64_t width, float* out) {
  const auto [index, i] = PlaceOfThread(width);
  if (i >= width || row[index] < 0) return;
  const int n = VectorSize<kWhole>(i, width);
  float* to = out + row[index] * width;
  const float factor = weight[index];
  float values[kVector], sum[kVector];
  LoadVector<kWhole>(in + index * width, i, n, values);
  LoadVector<kWhole>(to, i, n, sum);
  for (int j = 0; j < kVector; ++j) sum[j] += factor * values[j];
  StoreVector<kWhole>(to, i, n, sum);
}

// 16 bytes a thread where kUnit is 16, else 2.
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

void AddWeighted(WeightType type, const void* in, const int32_t* row, const float* weight,
                 int64_t count, int64_t width, float* out, const Stream& stream) {
  if (count == 0) return;
  WithElement(type, [&]<typename T>() {
    const bool whole = WholeVectors(width, in, out);
    const auto add_weighted = whole ? &AddWeightedKernel<T, true> : &AddWeightedKernel<T, false>;
    EVALD_LAUNCH(add_weighted, StretchBlocks(count, width), kThreads, 0, stream,
                 static_cast<const T*>(in), row, weight, width, out);
  });
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
