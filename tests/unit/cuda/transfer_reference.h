#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "worker/native/cuda/device_weights.h"
#include "worker/native/cuda/runtime.h"

/// The reference of the pull's tests: number formats by their definition, in double precision.
namespace evald::native::cuda {

/// The value of a 16-bit pattern with these numbers of bits for exponent and fraction.
inline double DecodeHalf(uint16_t bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction == 0 ? sign * INFINITY : NAN;
  const double whole = exponent == 0 ? fraction : fraction + (1 << fraction_bits);
  return sign * std::ldexp(whole, std::max(exponent, 1) - bias - fraction_bits);
}

/// Finds the nearest pattern among all patterns, and the even one of two equally near.
class HalfTable {
 public:
  HalfTable(int exponent_bits, int fraction_bits) {
    const int infinity = ((1 << exponent_bits) - 1) << fraction_bits;
    for (int bits = 0; bits < infinity; ++bits) {
      values_.push_back(DecodeHalf(static_cast<uint16_t>(bits), exponent_bits, fraction_bits));
    }
    // The number that infinity's pattern would be if it were finite.
    values_.push_back(std::ldexp(1.0, 1 << (exponent_bits - 1)));
  }

  uint16_t Encode(double value) const {
    const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    const double magnitude = std::min(std::abs(value), values_.back());
    const auto above = std::lower_bound(values_.begin(), values_.end(), magnitude);
    auto bits = static_cast<uint16_t>(above - values_.begin());
    if (bits > 0) {
      const double up = *above - magnitude, down = magnitude - values_[bits - 1U];
      if (down < up || (down == up && bits % 2 == 1)) --bits;
    }
    return sign | bits;
  }

 private:
  std::vector<double> values_;
};

inline const HalfTable& TableOf(WeightType type) {
  static const HalfTable f16(5, 10), bf16(8, 7);
  return type == WeightType::kF16 ? f16 : bf16;
}

inline uint64_t BytesOf(WeightType type) { return type == WeightType::kF32 ? 4 : 2; }

/// `count` stored weights in the form that the device wants.
inline std::string Expected(const char* from, WeightType stored, uint64_t count,
                            WeightType wanted) {
  if (stored == wanted) return {from, count * BytesOf(stored)};
  std::string bytes(count * BytesOf(wanted), '\0');
  for (uint64_t i = 0; i < count; ++i) {
    double value = 0;
    uint16_t half = 0;
    float single = 0;
    if (stored == WeightType::kF32) {
      std::memcpy(&single, from + 4 * i, 4);
      value = single;
    } else {
      std::memcpy(&half, from + 2 * i, 2);
      value = stored == WeightType::kF16 ? DecodeHalf(half, 5, 10) : DecodeHalf(half, 8, 7);
    }
    if (wanted == WeightType::kF32) {
      single = static_cast<float>(value);
      std::memcpy(bytes.data() + 4 * i, &single, 4);
    } else {
      half = TableOf(wanted).Encode(value);
      std::memcpy(bytes.data() + 2 * i, &half, 2);
    }
  }
  return bytes;
}

inline std::string Download(const void* device, uint64_t bytes) {
  std::string host(bytes, '\0');
  Stream stream;
  CopyToHost(host.data(), device, bytes, stream);
  stream.Synchronize();
  return host;
}

/// Checks that all transfers are on the device. Returns a message about the first that is not, or
/// "".
inline std::string FirstWrong(const std::vector<DeviceWeights::Transfer>& transfers) {
  for (size_t i = 0; i < transfers.size(); ++i) {
    const DeviceWeights::Transfer& t = transfers[i];
    if (Download(t.to, t.elements * BytesOf(t.wanted)) !=
        Expected(t.from, t.stored, t.elements, t.wanted)) {
      return "transfer " + std::to_string(i) + " of " + std::to_string(t.elements) + " elements";
    }
  }
  return "";
}

}  // namespace evald::native::cuda
