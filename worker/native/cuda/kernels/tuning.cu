#include "worker/native/cuda/kernels/device_code.cuh"
#include "worker/native/cuda/tuning.h"

namespace evald::native::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kWordsPerThread = 16;

// A 32-bit hash with full avalanche (C. Wellons' "lowbias32").
__device__ __forceinline__ uint32_t Mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7FEB352Du;
  x ^= x >> 15;
  x *= 0x846CA68Bu;
  x ^= x >> 16;
  return x;
}

template <typename T>
__global__ void FillRandomKernel(T* x, int64_t count, uint32_t seed) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const uint32_t bits = Mix(static_cast<uint32_t>(i) ^ Mix(seed ^ static_cast<uint32_t>(i >> 32)));
  // Odd multiples of 2^-24, exact in fp32 and never 0, so that every order of summation shows.
  const int32_t odd = static_cast<int32_t>(bits >> 8) * 2 + 1 - (1 << 24);
  x[i] = From<T>(static_cast<float>(odd) * 0x1p-24f);
}

__global__ void CountDifferencesKernel(const uint32_t* a, const uint32_t* b, int64_t words,
                                       unsigned long long* differences) {
  int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads * kWordsPerThread + threadIdx.x;
  unsigned found = 0;
  for (int64_t n = 0; n < kWordsPerThread && i < words; ++n, i += kThreads) {
    const uint32_t difference = a[i] ^ b[i];
    for (int byte = 0; byte < 4; ++byte) found += (difference >> (8 * byte) & 0xFF) != 0;
  }
  if (found > 0) atomicAdd(differences, static_cast<unsigned long long>(found));
}

template <typename T>
void Fill(void* x, int64_t count, uint32_t seed, const Stream& stream) {
  const dim3 grid(static_cast<unsigned>(DivideUp<int64_t>(count, kThreads)));
  EVALD_LAUNCH(FillRandomKernel<T>, grid, kThreads, 0, stream, static_cast<T*>(x), count, seed);
}

}  // namespace

void FillRandom(WeightType type, void* x, int64_t count, uint32_t seed, const Stream& stream) {
  if (count == 0) return;
  switch (type) {
    case WeightType::kF32:
      return Fill<float>(x, count, seed, stream);
    case WeightType::kF16:
      return Fill<F16>(x, count, seed, stream);
    case WeightType::kBF16:
      return Fill<BF16>(x, count, seed, stream);
  }
}

void CountDifferences(const void* a, const void* b, int64_t bytes, unsigned long long* differences,
                      const Stream& stream) {
  const int64_t words = bytes / 4;
  if (words == 0) return;
  const dim3 grid(static_cast<unsigned>(DivideUp(words, kThreads * kWordsPerThread)));
  EVALD_LAUNCH(CountDifferencesKernel, grid, kThreads, 0, stream, static_cast<const uint32_t*>(a),
               static_cast<const uint32_t*>(b), words, differences);
}

}  // namespace evald::native::cuda
