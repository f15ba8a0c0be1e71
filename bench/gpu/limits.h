#pragma once

#include <cstdint>

#include "worker/native/cuda/runtime.h"

/// What the GPU that is current can do at most, measured with plain calls in the same run as a
/// workload, so that its figure has a limit beside it.
namespace evald::bench {

struct LimitSizes {
  uint64_t copy_bytes = uint64_t{256} << 20;  ///< of one copy
  int64_t matrix = 8192;                      ///< rows and columns of a product
  double seconds = 1;                         ///< each measurement takes about so long

  static LimitSizes Quick() { return {uint64_t{1} << 20, 64, 0.01}; }
};

/// Device memory full of bf16 numbers, random in [-1, 1): products of equal ones are faster than
/// real ones.
native::cuda::Memory RandomNumbers(uint64_t bytes, uint64_t seed);

/// Bytes/s from page-locked memory of the host to the device, on as many streams as do best (1, 2
/// or 4).
double PinnedRate(const LimitSizes& sizes);

/// Bytes/s of the device's memory: what a copy within it reads and writes together.
double MemoryRate(const LimitSizes& sizes);

/// Operations/s of a large bf16 product of random numbers, by the library's own choice of an
/// algorithm: the median of rounds.
double MatrixRate(const LimitSizes& sizes);

}  // namespace evald::bench
