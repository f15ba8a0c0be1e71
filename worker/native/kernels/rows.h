#pragma once
// One row at a time: norms, activations, sums, widened weights.

#include <cstdint>

#include "worker/native/kernels/vectors.h"

namespace evald::native {
namespace {

template <WeightType T>
void WidenTyped(const unsigned char* w, int64_t n, float* out) {
  constexpr int kBytes = Element<T>::kBytes;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) Ops::Store(out + i, Element<T>::Load(w + i * kBytes));
  if (i < n) StorePartial(out + i, LoadPartial<T>(w + i * kBytes, n - i), n - i);
}

void Widen(const void* weights, WeightType type, int64_t n, float* out) {
  const auto* w = static_cast<const unsigned char*>(weights);
  switch (type) {
    case WeightType::kF32:
      return WidenTyped<WeightType::kF32>(w, n, out);
    case WeightType::kF16:
      return WidenTyped<WeightType::kF16>(w, n, out);
    case WeightType::kBF16:
      return WidenTyped<WeightType::kBF16>(w, n, out);
  }
}

void RmsNorm(const float* x, const float* weight, float eps, int64_t n, float* out) {
  V squares = Ops::Zero();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const V v = Ops::Load(x + i);
    squares = Ops::Fma(v, v, squares);
  }
  if (i < n) {
    const V v = LoadFloats(x + i, n - i);
    squares = Ops::Fma(v, v, squares);
  }
  const float factor = 1.0f / __builtin_sqrtf(Sum(squares) / static_cast<float>(n) + eps);
  for (i = 0; i < n; ++i) out[i] = x[i] * factor * weight[i];
}

void LayerNorm(const float* x, const float* weight, const float* bias, float eps, int64_t n,
               float* out) {
  V sum = Ops::Zero();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) sum = Ops::Add(sum, Ops::Load(x + i));
  if (i < n) sum = Ops::Add(sum, LoadFloats(x + i, n - i));
  const float mean = Sum(sum) / static_cast<float>(n);
  V squares = Ops::Zero();
  for (i = 0; i + kLanes <= n; i += kLanes) {
    const V v = Ops::Sub(Ops::Load(x + i), Ops::Set(mean));
    squares = Ops::Fma(v, v, squares);
  }
  float rest = 0;
  for (; i < n; ++i) rest += (x[i] - mean) * (x[i] - mean);
  const float variance = (Sum(squares) + rest) / static_cast<float>(n);
  const float factor = 1.0f / __builtin_sqrtf(variance + eps);
  for (i = 0; i < n; ++i) out[i] = (x[i] - mean) * factor * weight[i] + bias[i];
}

// x * sigmoid(y)
V TimesSigmoid(V x, V y) {
  return Ops::Div(x, Ops::Add(Ops::Set(1.0f), Exp(Ops::Sub(Ops::Zero(), y))));
}

// x * Phi(x) with Phi(x) = (1 + erf(x / sqrt 2)) / 2. With z = |x| / sqrt 2: below 1, erf(z) / z is
// a polynomial in z^2; above, erfc(z) exp(z^2) is one in 1 / (1 + z / 2). Both are Chebyshev fits
// in 30 digits (mpmath.chebyfit) with errors below 2e-9.
V Gelu(V x) {
  static constexpr float kNear[] = {
      7.875875062685488e-05f, -0.000801686428716587f, 0.005189087423433974f, -0.026854212010626412f,
      0.11283594715160218f,   -0.37612626666720334f,  1.1283791658483509f};
  static constexpr float kFar[] = {
      0.07406618510415465f, -0.1626377456071777f, -0.006260173530236518f,
      0.12965188323188417f, 0.14660777665010363f, 0.25629827178644027f,
      0.28040470918310917f, 0.282256286260419f,   -6.433822950737581e-06f};
  const V one = Ops::Set(1.0f), half = Ops::Set(0.5f);
  const V scaled = Ops::Mul(x, Ops::Set(0.70710678118654752f));
  const V z = Ops::Max(Ops::Sub(Ops::Zero(), scaled), scaled);
  const V square = Ops::Mul(z, z);
  const V erf = Ops::Mul(scaled, Polynomial(kNear, Ops::Min(one, square)));
  const V near = Ops::Fma(erf, half, half);
  const V t = Ops::Div(one, Ops::Fma(z, half, one));
  const V tail = Ops::Mul(Ops::Mul(half, Exp(Ops::Sub(Ops::Zero(), square))), Polynomial(kFar, t));
  const V far = Ops::Add(tail, Ops::ZeroBelow(x, Ops::Zero(), Ops::Sub(one, Ops::Add(tail, tail))));
  const V phi = Ops::Add(Ops::ZeroBelow(z, one, far), Ops::Sub(near, Ops::ZeroBelow(z, one, near)));
  return Ops::Mul(x, phi);
}

// The approximation 0.5 x (1 + tanh y) = x * sigmoid(2 y), y = sqrt(2 / pi) (x + 0.044715 x^3).
V GeluTanh(V x) {
  const V cube = Ops::Mul(Ops::Mul(x, x), x);
  const V y = Ops::Fma(cube, Ops::Set(0.044715f), x);
  return TimesSigmoid(x, Ops::Mul(y, Ops::Set(2 * 0.79788456080286536f)));
}

template <typename F>
void ActivateWith(F function, const float* x, const float* factor, int64_t n, float* out) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const V y = function(Ops::Load(x + i));
    Ops::Store(out + i, factor == nullptr ? y : Ops::Mul(y, Ops::Load(factor + i)));
  }
  if (i == n) return;
  const V y = function(LoadFloats(x + i, n - i));
  StorePartial(out + i, factor == nullptr ? y : Ops::Mul(y, LoadFloats(factor + i, n - i)), n - i);
}

void Activate(Activation activation, const float* x, const float* factor, int64_t n, float* out) {
  switch (activation) {
    case Activation::kSilu:
      return ActivateWith([](V v) { return TimesSigmoid(v, v); }, x, factor, n, out);
    case Activation::kGelu:
      return ActivateWith([](V v) { return Gelu(v); }, x, factor, n, out);
    case Activation::kGeluTanh:
      return ActivateWith([](V v) { return GeluTanh(v); }, x, factor, n, out);
  }
}

void AddTo(float* x, const float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] += y[i];
}

bool Maximum(const float* x, int64_t n, float* maximum) {
  V top = Ops::Set(x[0]);
  V check = Ops::Zero();  // x * 0 is NaN unless x is finite
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const V v = Ops::Load(x + i);
    top = Ops::Max(top, v);
    check = Ops::Fma(v, Ops::Zero(), check);
  }
  float largest = Ops::HMax(top);
  float rest = Sum(check);
  for (; i < n; ++i) {
    if (x[i] > largest) largest = x[i];
    rest += x[i] * 0.0f;
  }
  *maximum = largest;
  return rest == 0.0f;
}

double SumExp(const float* x, int64_t n, float maximum) {
  constexpr int64_t kBlock = 64 * kLanes;  // summed in fp32 before it is added in double
  const V top = Ops::Set(maximum);
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = begin + kBlock < n ? begin + kBlock : n;
    V sum = Ops::Zero();
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      sum = Ops::Add(sum, Exp(Ops::Sub(Ops::Load(x + i), top)));
    }
    total += Sum(sum);
    for (; i < end; ++i) {
      float e[kLanes];
      Ops::Store(e, Exp(Ops::Set(x[i] - maximum)));
      total += e[0];
    }
  }
  return total;
}

}  // namespace
}  // namespace evald::native
