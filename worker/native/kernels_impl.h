#pragma once
// The kernels, written once over `Ops`, the vector operations of one instruction set. Each of
// kernels_{portable,avx2,avx512}.cc defines Ops in an anonymous namespace and includes this file
// after it. Everything is in the anonymous namespace: code compiled for a newer instruction set
// must never be picked by the linker for an older machine.
//
// Ops: V (a vector of kLanes floats), Zero, Set, Load, Store, Fma, Add, Sub, Mul, Div, Max, Min,
// Round, Pow2 (2^n of integral n in [-126, 127]), ZeroBelow (0 where x < limit, else y), HMax,
// Reduce4, WidenBf16, WidenF16; kRows x kCols accumulators of a matrix tile; kScoreRows x
// kScoreVecs of attention scores; kValueRows x kValueVecs of attention output.

#include <cmath>
#include <cstdint>
#include <cstring>

#include "worker/native/kernels.h"

namespace evald::native {
namespace {

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

float Sum(V v) {
  float out[4];
  Ops::Reduce4(v, v, v, v, out);
  return out[0];
}

// ---- matrix products

// R rows of x times N rows of weights: one vector of partial sums each, over the whole inner
// dimension, then one fixed tree over its lanes.
template <WeightType T, int R, int N>
void Tile(const float* x, const unsigned char* w, int64_t inner, const float* bias, float* y,
          int64_t y_stride) {
  constexpr int kBytes = Element<T>::kBytes;
  V sums[R][N];
  for (int r = 0; r < R; ++r) {
    for (int n = 0; n < N; ++n) sums[r][n] = Ops::Zero();
  }
  int64_t i = 0;
  for (; i + kLanes <= inner; i += kLanes) {
    V weights[N];
    for (int n = 0; n < N; ++n) weights[n] = Element<T>::Load(w + (n * inner + i) * kBytes);
    for (int r = 0; r < R; ++r) {
      const V value = Ops::Load(x + r * inner + i);
      for (int n = 0; n < N; ++n) sums[r][n] = Ops::Fma(value, weights[n], sums[r][n]);
    }
  }
  if (i < inner) {
    for (int n = 0; n < N; ++n) {
      const V weights = LoadPartial<T>(w + (n * inner + i) * kBytes, inner - i);
      for (int r = 0; r < R; ++r) {
        sums[r][n] = Ops::Fma(LoadFloats(x + r * inner + i, inner - i), weights, sums[r][n]);
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    float out[4];
    Ops::Reduce4(sums[r][0], sums[r][N > 1 ? 1 : 0], sums[r][N > 2 ? 2 : 0], sums[r][N > 3 ? 3 : 0],
                 out);
    for (int n = 0; n < N; ++n) y[r * y_stride + n] = bias == nullptr ? out[n] : out[n] + bias[n];
  }
}

template <WeightType T, int N>
void TileRows(int64_t rows, const float* x, const unsigned char* w, int64_t inner,
              const float* bias, float* y, int64_t y_stride) {
  static_assert(Ops::kRows <= 6);
  while (rows >= Ops::kRows) {
    Tile<T, Ops::kRows, N>(x, w, inner, bias, y, y_stride);
    x += Ops::kRows * inner;
    y += Ops::kRows * y_stride;
    rows -= Ops::kRows;
  }
  switch (rows) {
    case 5:
      return Tile < T, Ops::kRows < 5 ? 1 : 5, N > (x, w, inner, bias, y, y_stride);
    case 4:
      return Tile < T, Ops::kRows < 4 ? 1 : 4, N > (x, w, inner, bias, y, y_stride);
    case 3:
      return Tile < T, Ops::kRows < 3 ? 1 : 3, N > (x, w, inner, bias, y, y_stride);
    case 2:
      return Tile < T, Ops::kRows < 2 ? 1 : 2, N > (x, w, inner, bias, y, y_stride);
    case 1:
      return Tile<T, 1, N>(x, w, inner, bias, y, y_stride);
    default:
      return;
  }
}

template <WeightType T>
void WidenTyped(const unsigned char* w, int64_t n, float* out) {
  constexpr int kBytes = Element<T>::kBytes;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) Ops::Store(out + i, Element<T>::Load(w + i * kBytes));
  if (i < n) StorePartial(out + i, LoadPartial<T>(w + i * kBytes, n - i), n - i);
}

// Columns [n, n + N) for a block of rows. With many rows the weights are widened once, into
// scratch; the numbers are the same.
template <WeightType T, int N>
void Columns(const MultiplyArgs& a, int64_t n, int64_t row, int64_t rows) {
  static_assert(N <= kMultiplyScratchRows);
  const auto* w = static_cast<const unsigned char*>(a.weights) + n * a.inner * Element<T>::kBytes;
  const float* x = a.x + row * a.inner;
  float* y = a.y + row * a.y_stride + n;
  const float* bias = a.bias == nullptr ? nullptr : a.bias + n;
  if (T != WeightType::kF32 && rows > 2 * Ops::kRows) {
    WidenTyped<T>(w, N * a.inner, a.scratch);
    TileRows<WeightType::kF32, N>(rows, x, reinterpret_cast<const unsigned char*>(a.scratch),
                                  a.inner, bias, y, a.y_stride);
  } else {
    TileRows<T, N>(rows, x, w, a.inner, bias, y, a.y_stride);
  }
}

template <WeightType T>
void MultiplyTyped(const MultiplyArgs& a) {
  // Rows of x per block: what stays in the second-level cache while weights pass by.
  constexpr int64_t kBlockFloats = 64 * 1024;
  int64_t block = kBlockFloats / a.inner / Ops::kRows * Ops::kRows;
  if (block < 4 * Ops::kRows) block = 4 * Ops::kRows;
  for (int64_t row = 0; row < a.rows; row += block) {
    const int64_t rows = a.rows - row < block ? a.rows - row : block;
    int64_t n = a.first;
    for (; n + Ops::kCols <= a.end; n += Ops::kCols) Columns<T, Ops::kCols>(a, n, row, rows);
    for (; n < a.end; ++n) Columns<T, 1>(a, n, row, rows);
  }
}

void Multiply(const MultiplyArgs& a) {
  switch (a.type) {
    case WeightType::kF32:
      return MultiplyTyped<WeightType::kF32>(a);
    case WeightType::kF16:
      return MultiplyTyped<WeightType::kF16>(a);
    case WeightType::kBF16:
      return MultiplyTyped<WeightType::kBF16>(a);
  }
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

// ---- attention

// Scores of R query rows against kScoreVecs * kLanes keys, each a sum over the head's dimensions in
// order.
template <int R>
void Scores(const float* const* q, const float* keys, int head_dim, float* out, int64_t stride) {
  V sums[R][Ops::kScoreVecs];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < Ops::kScoreVecs; ++v) sums[r][v] = Ops::Zero();
  }
  for (int d = 0; d < head_dim; ++d) {
    V key[Ops::kScoreVecs];
    for (int v = 0; v < Ops::kScoreVecs; ++v) {
      const int offset = v * kLanes;
      key[v] = Ops::Load(keys + offset / kKeyBlock * head_dim * kKeyBlock + d * kKeyBlock +
                         offset % kKeyBlock);
    }
    for (int r = 0; r < R; ++r) {
      const V query = Ops::Set(q[r][d]);
      for (int v = 0; v < Ops::kScoreVecs; ++v) sums[r][v] = Ops::Fma(query, key[v], sums[r][v]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < Ops::kScoreVecs; ++v) Ops::Store(out + r * stride + v * kLanes, sums[r][v]);
  }
}

template <int R>
void ScoreRows(const AttendArgs& a, int first_row, int64_t keys, int64_t stride) {
  constexpr int kStep = Ops::kScoreVecs * kLanes;
  static_assert(kStep % kKeyBlock == 0 && kPagePositions % kStep == 0);
  const float* q[R];
  for (int r = 0; r < R; ++r) {
    const int row = first_row + r;
    q[r] = a.q + row / a.group * a.q_stride + row % a.group * a.head_dim;
  }
  for (int64_t j = 0; j < keys; j += kStep) {
    const float* page = a.pages[j / kPagePositions] + a.key_offset;
    Scores<R>(q, page + j % kPagePositions * a.head_dim, a.head_dim,
              a.scratch + first_row * stride + j, stride);
  }
}

// Turns the scores of one row into exp(scale * (score - largest)), 0 before key `first` and from
// `keys` on, over `padded` places; returns 1 / their sum.
float Softmax(float* scores, int64_t first, int64_t keys, int64_t padded, float scale) {
  for (int64_t j = 0; j < first; ++j) scores[j] = -INFINITY;
  for (int64_t j = keys; j < padded; ++j) scores[j] = -INFINITY;
  V largest = Ops::Load(scores);
  for (int64_t j = kLanes; j < padded; j += kLanes) {
    largest = Ops::Max(Ops::Load(scores + j), largest);
  }
  const V top = Ops::Set(Ops::HMax(largest));
  const V factor = Ops::Set(scale);
  V sum = Ops::Zero();
  for (int64_t j = 0; j < padded; j += kLanes) {
    const V e = Exp(Ops::Mul(Ops::Sub(Ops::Load(scores + j), top), factor));
    Ops::Store(scores + j, e);
    sum = Ops::Add(sum, e);
  }
  return 1.0f / Sum(sum);
}

// Weighted sums of values for R rows and N vectors of dimensions, in order of key position.
template <int R, int N>
void Values(const AttendArgs& a, const float* weights, int64_t stride, int64_t keys, int dimension,
            V (&sums)[R][N]) {
  for (int r = 0; r < R; ++r) {
    for (int n = 0; n < N; ++n) sums[r][n] = Ops::Zero();
  }
  for (int64_t begin = 0; begin < keys; begin += kPagePositions) {
    const float* value = a.pages[begin / kPagePositions] + a.value_offset + dimension;
    const int64_t end = begin + kPagePositions < keys ? begin + kPagePositions : keys;
    for (int64_t j = begin; j < end; ++j, value += a.value_stride) {
      V v[N];
      for (int n = 0; n < N; ++n) v[n] = Ops::Load(value + n * kLanes);
      for (int r = 0; r < R; ++r) {
        const V weight = Ops::Set(weights[r * stride + j]);
        for (int n = 0; n < N; ++n) sums[r][n] = Ops::Fma(weight, v[n], sums[r][n]);
      }
    }
  }
}

template <int R, int N>
void ValueTile(const AttendArgs& a, int first_row, int64_t stride, int64_t keys, int dimension,
               const float* inverse_sums) {
  V sums[R][N];
  Values<R, N>(a, a.scratch + first_row * stride, stride, keys, dimension, sums);
  for (int r = 0; r < R; ++r) {
    const int row = first_row + r;
    float* out = a.out + row / a.group * a.out_stride + row % a.group * a.head_dim;
    const V inverse = Ops::Set(inverse_sums[r]);
    for (int n = 0; n < N; ++n) {
      const int d = dimension + n * kLanes;
      const V result = Ops::Mul(sums[r][n], inverse);
      if (d + kLanes <= a.head_dim) {
        Ops::Store(out + d, result);
      } else if (d < a.head_dim) {
        StorePartial(out + d, result, a.head_dim - d);
      }
    }
  }
}

template <int R>
void ValueRows(const AttendArgs& a, int first_row, int64_t stride, int64_t keys,
               const float* inverse_sums) {
  int d = 0;
  constexpr int kStep = Ops::kValueVecs * kLanes;
  for (; d + kStep <= a.value_stride; d += kStep) {
    ValueTile<R, Ops::kValueVecs>(a, first_row, stride, keys, d, inverse_sums);
  }
  for (; d < a.head_dim; d += kLanes) ValueTile<R, 1>(a, first_row, stride, keys, d, inverse_sums);
}

void Attend(const AttendArgs& a) {
  const int rows = a.positions * a.group;
  const int64_t keys = a.first_position + a.positions;
  const int64_t stride = ScoreStride(keys);
  int row = 0;
  for (; row + Ops::kScoreRows <= rows; row += Ops::kScoreRows) {
    ScoreRows<Ops::kScoreRows>(a, row, keys, stride);
  }
  for (; row < rows; ++row) ScoreRows<1>(a, row, keys, stride);
  constexpr int kStep = Ops::kScoreVecs * kLanes;
  const int64_t padded = (keys + kStep - 1) / kStep * kStep;
  for (row = 0; row < rows;) {
    const int count = rows - row >= Ops::kValueRows ? Ops::kValueRows : 1;
    float inverse_sums[Ops::kValueRows];
    for (int r = 0; r < count; ++r) {
      const int64_t end = a.first_position + (row + r) / a.group + 1;
      const int64_t first = a.window > 0 && end > a.window ? end - a.window : 0;
      inverse_sums[r] = Softmax(a.scratch + (row + r) * stride, first, end, padded, a.scale);
    }
    const int64_t seen = a.first_position + (row + count - 1) / a.group + 1;
    if (count == 1) {
      ValueRows<1>(a, row, stride, seen, inverse_sums);
    } else {
      ValueRows<Ops::kValueRows>(a, row, stride, seen, inverse_sums);
    }
    row += count;
  }
}

// ---- one row at a time

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

template <int N>
V Polynomial(const float (&coefficients)[N], V x) {
  V sum = Ops::Set(coefficients[0]);
  for (int i = 1; i < N; ++i) sum = Ops::Fma(sum, x, Ops::Set(coefficients[i]));
  return sum;
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
  V check = Ops::Zero();  // x * 0 is NaN for what is not finite
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

constexpr Kernels kKernels = {Ops::kName, Multiply, Attend, RmsNorm, LayerNorm,
                              Activate,   AddTo,    Widen,  Maximum, SumExp};

}  // namespace
}  // namespace evald::native
