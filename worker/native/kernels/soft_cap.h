#pragma once
// Numbers kept within a bound by tanh.

#include <cstdint>

#include "worker/native/kernels/vectors.h"

namespace evald::native {
namespace {

// tanh(x), with errors below 1e-7. Near 0 tanh(x) / x is a polynomial in x^2, a Chebyshev fit in 30
// digits (mpmath.chebyfit) with an error below 2e-10; farther out it is 1 - 2 / (exp(2 |x|) + 1).
// NaN stays NaN.
V Tanh(V x) {
  static constexpr float kNear[] = {
      0.0021274353634957097f, -0.008157853372483882f, 0.0216912653165213f, -0.053944584678163064f,
      0.13333181748509385f,   -0.3333332966292952f,   0.9999999998539348f};
  const V one = Ops::Set(1.0f), limit = Ops::Set(0.625f);
  const V size = Ops::Max(Ops::Sub(Ops::Zero(), x), x);
  const V small = Ops::Max(Ops::Set(-0.625f), Ops::Min(limit, x));
  const V near = Ops::Mul(small, Polynomial(kNear, Ops::Mul(small, small)));
  const V rest = Ops::Div(Ops::Set(2.0f), Ops::Add(Exp(Ops::Add(size, size)), one));
  const V far = Ops::Sub(one, rest);
  const V signed_far = Ops::Sub(Ops::ZeroBelow(x, Ops::Zero(), Ops::Add(far, far)), far);
  return Ops::Add(Ops::ZeroBelow(size, limit, signed_far),
                  Ops::Sub(near, Ops::ZeroBelow(size, limit, near)));
}

// x = cap * tanh(scale * x / cap)
void SoftCap(float* x, int64_t n, float scale, float cap) {
  const V factor = Ops::Set(scale), bound = Ops::Set(cap);
  for (int64_t i = 0; i < n; i += kLanes) {
    const V scaled = Ops::Div(Ops::Mul(LoadUpTo(x + i, n - i), factor), bound);
    StoreUpTo(x + i, Ops::Mul(Tanh(scaled), bound), n - i);
  }
}

}  // namespace
}  // namespace evald::native
