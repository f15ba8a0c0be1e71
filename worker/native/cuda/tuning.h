#pragma once

#include <cstdint>

#include "worker/native/cuda/runtime.h"
#include "worker/native/kernels.h"

/// Kernels to choose algorithms of products: random numbers and a comparison of bits, so that
/// neither has to cross the bus.
namespace evald::native::cuda {

/// x[i] is uniform in (-1, 1), rounded to `type`; it depends on `seed` and i alone.
void FillRandom(WeightType type, void* x, int64_t count, uint32_t seed, const Stream& stream);

/// *differences += the number of bytes in which a and b differ, from 0 to 4 for each 4 of them;
/// `bytes` is a multiple of 4.
void CountDifferences(const void* a, const void* b, int64_t bytes, unsigned long long* differences,
                      const Stream& stream);

}  // namespace evald::native::cuda
