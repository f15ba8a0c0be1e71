#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace evald::native::cuda {

/// Numbers of 16 bits. Conversion from fp32 rounds to nearest even; NaN becomes the GPU's own NaN.
struct BF16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

inline float ToFloat(float x) { return x; }
inline float ToFloat(BF16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }
inline float ToFloat(F16 x) {
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000) << 16;
  const uint32_t exponent = x.bits >> 10 & 31, fraction = x.bits & 1023;
  if (exponent == 0) {  // a multiple of 2^-24
    const float value = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
  }
  const uint32_t rebiased = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | rebiased << 23 | fraction << 13);
}

template <typename T>
T From(float x);
template <>
inline float From<float>(float x) {
  return x;
}
template <>
inline BF16 From<BF16>(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return {0x7FFF};
  return {static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
}
template <>
inline F16 From<F16>(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7FFFFFFF;
  const auto with_sign = [&](uint32_t half) { return F16{static_cast<uint16_t>(sign | half)}; };
  if (size > 0x7F800000) return {0x7FFF};
  if (size >= 0x477FF000) return with_sign(0x7C00);  // 65520 and more
  if (size < 0x38800000) {                           // the result is a multiple of 2^-24
    const float units = std::bit_cast<float>(size) * 0x1p24f;
    return with_sign(static_cast<uint32_t>(std::nearbyint(units)));
  }
  return with_sign((size + 0xFFF + (size >> 13 & 1) - 0x38000000) >> 13);
}

}  // namespace evald::native::cuda
