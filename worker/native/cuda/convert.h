#pragma once

#include <cstdint>

#include "worker/native/kernels.h"

namespace evald::native::cuda {

inline uint64_t ElementBytes(WeightType type) { return type == WeightType::kF32 ? 4 : 2; }

/// Rounds to the nearest, ties to even. NaN stays NaN; too large a value becomes infinity.
uint16_t ToBF16(float value);
uint16_t ToF16(float value);

/// Writes `count` weights as `wanted`, rounded to the nearest, ties to even. `from` and `to` may
/// have any alignment. Returns false if a finite weight is too large for `wanted`; the rest is
/// written all the same.
bool Convert(const char* from, WeightType stored, uint64_t count, WeightType wanted, char* to);

}  // namespace evald::native::cuda
