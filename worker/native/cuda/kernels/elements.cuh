#pragma once

#include "worker/native/cuda/kernels/device_code.cuh"
#include "worker/native/kernels.h"

/// Rows of elements, taken by threads in vectors of kVector elements and computed in fp32.
namespace evald::native::cuda {

inline constexpr int kVector = 8;     ///< elements: 16 bytes of bf16 or fp16, 32 of fp32
inline constexpr int kThreads = 256;  ///< of a block, by default

/// Calls `f` with the element type as template argument.
template <typename F>
void WithElement(WeightType type, const F& f) {
  switch (type) {
    case WeightType::kF32:
      return f.template operator()<float>();
    case WeightType::kF16:
      return f.template operator()<F16>();
    case WeightType::kBF16:
      return f.template operator()<BF16>();
  }
}

/// Whether rows of `width` elements at these addresses can be read in whole vectors. A null address
/// counts as aligned.
template <typename... Pointers>
bool WholeVectors(int64_t width, const Pointers*... rows) {
  return width % kVector == 0 && ((reinterpret_cast<uintptr_t>(rows) % 16 == 0) && ...);
}

/// The number of elements of the vector at `i` that lie within the row.
template <bool kWhole>
__device__ inline int VectorSize(int64_t i, int64_t width) {
  return kWhole || width - i >= kVector ? kVector : static_cast<int>(width - i);
}

/// values = row[i, i + n), with zeros behind. If `kWhole`, n is kVector and row + i is aligned to
/// 16 bytes.
template <bool kWhole, typename T>
__device__ inline void LoadVector(const T* row, int64_t i, int n, float (&values)[kVector]) {
  if constexpr (!kWhole) {
    for (int j = 0; j < kVector; ++j) values[j] = j < n ? ToFloat(row[i + j]) : 0.0f;
  } else if constexpr (sizeof(T) == sizeof(float)) {
    const uint4 low = Load16(row + i), high = Load16(row + i + 4);
    const uint32_t words[kVector] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    for (int j = 0; j < kVector; ++j) values[j] = __uint_as_float(words[j]);
  } else {
    const uint4 four = Load16(row + i);
    const uint32_t pairs[kVector / 2] = {four.x, four.y, four.z, four.w};
    for (int j = 0; j < kVector; ++j) values[j] = Unpack<T>(pairs[j / 2], j % 2);
  }
}

/// row[i, i + n) = values
template <bool kWhole, typename T>
__device__ inline void StoreVector(T* row, int64_t i, int n, const float (&values)[kVector]) {
  if constexpr (!kWhole) {
    for (int j = 0; j < kVector; ++j) {
      if (j < n) row[i + j] = From<T>(values[j]);
    }
  } else if constexpr (sizeof(T) == sizeof(float)) {
    uint32_t words[kVector];
    for (int j = 0; j < kVector; ++j) words[j] = __float_as_uint(values[j]);
    Store16(row + i, {words[0], words[1], words[2], words[3]});
    Store16(row + i + 4, {words[4], words[5], words[6], words[7]});
  } else {
    uint32_t pairs[kVector / 2];
    for (int j = 0; j < kVector / 2; ++j) pairs[j] = Pack2<T>(values[2 * j], values[2 * j + 1]);
    Store16(row + i, {pairs[0], pairs[1], pairs[2], pairs[3]});
  }
}

/// The number of blocks if rows are cut into stretches of kThreads vectors, one per block.
inline unsigned StretchBlocks(int64_t rows, int64_t width) {
  constexpr int64_t kStretch = int64_t{kThreads} * kVector;
  return static_cast<unsigned>(rows * DivideUp(width, kStretch));
}

/// The calling thread's vector in rows so cut. If i >= width, the vector is past the row.
struct VectorPlace {
  int64_t row;
  int64_t i;
};
__device__ inline VectorPlace PlaceOfThread(int64_t width) {
  constexpr int64_t kStretch = int64_t{kThreads} * kVector;
  const auto stretches = static_cast<unsigned>(DivideUp(width, kStretch));
  return {blockIdx.x / stretches,
          blockIdx.x % stretches * kStretch + int64_t{threadIdx.x} * kVector};
}

}  // namespace evald::native::cuda
