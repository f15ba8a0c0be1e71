#pragma once
// The parts that all kernels share for one instruction set. Included by impl.h, after Ops.

#include <cmath>
#include <cstdint>
#include <cstring>

#include "worker/native/kernels.h"

namespace evald::native {
namespace {

// Loops over the registers of a tile: unrolled before the compiler decides what stays in memory.
#if defined(__clang__)
#define EVALD_UNROLL _Pragma("unroll")
#else
#define EVALD_UNROLL _Pragma("GCC unroll 32")
#endif

using V = Ops::V;
constexpr int kLanes = Ops::kLanes;

template <WeightType T>
struct Element;
template <>
struct Element<WeightType::kF32> {
  static constexpr int kBytes = 4;
  static V Load(const unsigned char* p) { return Ops::Load(reinterpret_cast<const float*>(p)); }
};
template <>
struct Element<WeightType::kBF16> {
  static constexpr int kBytes = 2;
  static V Load(const unsigned char* p) { return Ops::WidenBf16(p); }
};
template <>
struct Element<WeightType::kF16> {
  static constexpr int kBytes = 2;
  static V Load(const unsigned char* p) { return Ops::WidenF16(p); }
};

// The first `count` elements, zeros behind them.
template <WeightType T>
V LoadPartial(const unsigned char* p, int64_t count) {
  alignas(64) unsigned char buffer[kLanes * Element<T>::kBytes] = {};
  std::memcpy(buffer, p, static_cast<size_t>(count) * Element<T>::kBytes);
  return Element<T>::Load(buffer);
}

V LoadFloats(const float* p, int64_t count) {
  return LoadPartial<WeightType::kF32>(reinterpret_cast<const unsigned char*>(p), count);
}

void StorePartial(float* p, V v, int64_t count) {
  alignas(64) float buffer[kLanes];
  Ops::Store(buffer, v);
  std::memcpy(p, buffer, static_cast<size_t>(count) * sizeof(float));
}

// exp(x) to about 1 ulp: x = n ln 2 + r, a degree 6 polynomial in r (coefficients of Cephes expf,
// S. L. Moshier). Exactly 0 below -87.3, so that a masked key has no weight; NaN stays NaN.
V Exp(V x) {
  const V low = Ops::Set(-87.3f);
  const V clamped = Ops::Min(Ops::Set(88.0f), Ops::Max(low, x));
  const V n = Ops::Round(Ops::Mul(clamped, Ops::Set(1.44269504088896341f)));
  V r = Ops::Fma(n, Ops::Set(-0.693359375f), clamped);
  r = Ops::Fma(n, Ops::Set(2.12194440e-4f), r);
  V p = Ops::Set(1.9875691500e-4f);
  p = Ops::Fma(p, r, Ops::Set(1.3981999507e-3f));
  p = Ops::Fma(p, r, Ops::Set(8.3334519073e-3f));
  p = Ops::Fma(p, r, Ops::Set(4.1665795894e-2f));
  p = Ops::Fma(p, r, Ops::Set(1.6666665459e-1f));
  p = Ops::Fma(p, r, Ops::Set(5.0000001201e-1f));
  p = Ops::Fma(p, Ops::Mul(r, r), Ops::Add(r, Ops::Set(1.0f)));
  return Ops::ZeroBelow(x, low, Ops::Mul(p, Ops::Pow2(n)));
}

// Horner, the highest power first.
template <int N>
V Polynomial(const float (&coefficients)[N], V x) {
  V sum = Ops::Set(coefficients[0]);
  for (int i = 1; i < N; ++i) sum = Ops::Fma(sum, x, Ops::Set(coefficients[i]));
  return sum;
}

float Sum(V v) {
  float totals[4];
  Ops::AddUp4(v, v, v, v, /*first=*/true, totals);
  return totals[0];
}

V LoadUpTo(const float* p, int64_t count) {
  return count >= kLanes ? Ops::Load(p) : LoadFloats(p, count);
}

void StoreUpTo(float* p, V v, int64_t count) {
  if (count >= kLanes) {
    Ops::Store(p, v);
  } else if (count > 0) {
    StorePartial(p, v, count);
  }
}

// The unit that a product adds up along the inner dimension: a number.
struct Numbers {
  static V MultiplyAdd(V x, V weights, V sums) { return Ops::Fma(x, weights, sums); }
  // kLanes of the `count` remaining numbers of a row of x, with zeros behind them.
  static V LoadRow(const float* x, int64_t count) {
    return count > 0 ? LoadUpTo(x, count) : Ops::Zero();
  }
  static constexpr int64_t kNumbers = 1;
};

// The unit is a pair of bf16 numbers, in the place of one fp32 number.
template <typename O>
struct PairsOf {
  static V MultiplyAdd(V x, V weights, V sums) { return O::DotPairs(x, weights, sums); }
  // As in Numbers, but of `count` remaining pairs; numbers are rounded to bf16.
  static V LoadRow(const float* x, int64_t count) {
    if (count >= kLanes) return O::RoundToPairs(O::Load(x), O::Load(x + kLanes));
    if (count <= 0) return O::Zero();
    alignas(64) float buffer[2 * kLanes] = {};
    std::memcpy(buffer, x, static_cast<size_t>(count) * 2 * sizeof(float));
    return O::RoundToPairs(O::Load(buffer), O::Load(buffer + kLanes));
  }
  static constexpr int64_t kNumbers = 2;
};
using Pairs = PairsOf<Ops>;

// Whether products with such weights add up pairs. A pair must not span two rows.
bool InPairs(WeightType type, int64_t inner) {
  return Ops::kDots && type == WeightType::kBF16 && inner % 2 == 0;
}

// Calls F<R>::Call(args...) with R = rows, which is at most Most.
template <int Most, template <int> class F, typename... Args>
void WithRows(int64_t rows, Args... args) {
  if constexpr (Most > 0) {
    if (rows == Most) return F<Most>::Call(args...);
    WithRows<Most - 1, F>(rows, args...);
  }
}

}  // namespace
}  // namespace evald::native
