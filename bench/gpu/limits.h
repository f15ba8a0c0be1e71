#pragma once

#include <cstdint>

#include "worker/native/cuda/runtime.h"

/// The limits of the current GPU, measured with plain calls in the same run as a workload, so that
/// the workload's figure has a limit beside it.
namespace evald::bench {

struct LimitSizes {
  uint64_t copy_bytes = uint64_t{256} << 20;  ///< of one copy
  int64_t matrix = 8192;                      ///< rows and columns of a product
  double seconds = 1;                         ///< each measurement takes about this long

  static LimitSizes Quick() { return {uint64_t{1} << 20, 64, 0.01}; }
};

/// Device memory full of bf16 numbers, random in [-1, 1). Products of equal numbers would be faster
/// than real ones.
native::cuda::Memory RandomNumbers(uint64_t bytes, uint64_t seed);

/// Bytes/s from page-locked memory of the host to the device. The best of 1, 2 or 4 streams.
double PinnedRate(const LimitSizes& sizes);

/// Bytes/s of the device's memory. A copy within the device counts as reads and writes together.
double MemoryRate(const LimitSizes& sizes);

/// Operations/s of a large bf16 product of random numbers, with the algorithm that the library
/// chooses: the median of rounds.
double MatrixRate(const LimitSizes& sizes);

}  // namespace evald::bench
