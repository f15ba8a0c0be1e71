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

// Loops over the registers of a tile: unrolled before the compiler decides what stays in memory.
#if defined(__clang__)
#define EVALD_UNROLL _Pragma("unroll")
#else
#define EVALD_UNROLL _Pragma("GCC unroll 8")
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

// Adds up the lanes of R rows of N vectors, by one fixed tree, and adds the bias.
template <int R, int N>
[[gnu::always_inline]] inline void Reduce(const V (&sums)[R][N], const float* bias, float* y,
                                          int64_t y_stride) {
  EVALD_UNROLL
  for (int r = 0; r < R; ++r) {
    EVALD_UNROLL
    for (int n = 0; n < N; n += 4) {
      float out[4];
      Ops::Reduce4(sums[r][n], sums[r][n + 1 < N ? n + 1 : n], sums[r][n + 2 < N ? n + 2 : n],
                   sums[r][n + 3 < N ? n + 3 : n], out);
      for (int i = n; i < N && i < n + 4; ++i) {
        y[r * y_stride + i] = bias == nullptr ? out[i - n] : out[i - n] + bias[i];
      }
    }
  }
}

// R rows of x times N rows of weights as they lie in the file: one vector of partial sums each,
// over the whole inner dimension. What lies `ahead` bytes further is fetched meanwhile, since few
// rows of x have nothing to wait for but memory.
template <WeightType T, int R, int N>
void Tile(const float* x, const unsigned char* w, int64_t inner, int64_t ahead, const float* bias,
          float* y, int64_t y_stride) {
  constexpr int kBytes = Element<T>::kBytes;
  V sums[R][N];
  EVALD_UNROLL
  for (int r = 0; r < R; ++r) {
    EVALD_UNROLL
    for (int n = 0; n < N; ++n) sums[r][n] = Ops::Zero();
  }
  int64_t i = 0;
  for (; i + kLanes <= inner; i += kLanes) {
    V weights[N];
    EVALD_UNROLL
    for (int n = 0; n < N; ++n) {
      const unsigned char* at = w + (n * inner + i) * kBytes;
      __builtin_prefetch(at + ahead, 0, 2);
      weights[n] = Element<T>::Load(at);
    }
    EVALD_UNROLL
    for (int r = 0; r < R; ++r) {
      const V value = Ops::Load(x + r * inner + i);
      EVALD_UNROLL
      for (int n = 0; n < N; ++n) sums[r][n] = Ops::Fma(value, weights[n], sums[r][n]);
    }
  }
  if (i < inner) {
    EVALD_UNROLL
    for (int n = 0; n < N; ++n) {
      const V weights = LoadPartial<T>(w + (n * inner + i) * kBytes, inner - i);
      EVALD_UNROLL
      for (int r = 0; r < R; ++r) {
        sums[r][n] = Ops::Fma(LoadFloats(x + r * inner + i, inner - i), weights, sums[r][n]);
      }
    }
  }
  Reduce<R, N>(sums, bias, y, y_stride);
}

// Calls F<R>::Call(args...) with R = rows, which is at most kRows.
template <template <int> class F, typename... Args>
void WithRows(int64_t rows, Args... args) {
  static_assert(Ops::kRows <= 6);
  switch (rows) {
    case 6:
      return F<(Ops::kRows < 6 ? 1 : 6)>::Call(args...);
    case 5:
      return F<(Ops::kRows < 5 ? 1 : 5)>::Call(args...);
    case 4:
      return F<(Ops::kRows < 4 ? 1 : 4)>::Call(args...);
    case 3:
      return F<(Ops::kRows < 3 ? 1 : 3)>::Call(args...);
    case 2:
      return F<2>::Call(args...);
    case 1:
      return F<1>::Call(args...);
    default:
      return;
  }
}

template <WeightType T, int N>
struct InPlace {
  // Of short rows the next N, which lie right behind; of long ones what follows in each, so that
  // little is fetched that another thread takes.
  static int64_t Ahead(const MultiplyArgs& a, int64_t n) {
    constexpr int64_t kShort = 4096, kFar = 1024;
    const int64_t row_bytes = a.inner * Element<T>::kBytes;
    if (row_bytes > kShort) return kFar;
    return n + N < a.end ? N * row_bytes : 0;
  }

  template <int R>
  struct Rows {
    static void Call(const MultiplyArgs* a, int64_t row, int64_t n) {
      Tile<T, R, N>(
          a->x + row * a->inner,
          static_cast<const unsigned char*>(a->weights) + n * a->inner * Element<T>::kBytes,
          a->inner, Ahead(*a, n), a->bias == nullptr ? nullptr : a->bias + n,
          a->y + row * a->y_stride + n, a->y_stride);
    }
  };
};

template <WeightType T>
void MultiplyInPlace(const MultiplyArgs& a) {
  int64_t n = a.first;
  for (; n + Ops::kCols <= a.end; n += Ops::kCols) {
    for (int64_t row = 0; row < a.rows; row += Ops::kRows) {
      const int64_t rows = a.rows - row < Ops::kRows ? a.rows - row : Ops::kRows;
      WithRows<InPlace<T, Ops::kCols>::template Rows>(rows, &a, row, n);
    }
  }
  for (; n < a.end; ++n) {
    for (int64_t row = 0; row < a.rows; row += Ops::kRows) {
      const int64_t rows = a.rows - row < Ops::kRows ? a.rows - row : Ops::kRows;
      WithRows<InPlace<T, 1>::template Rows>(rows, &a, row, n);
    }
  }
}

template <WeightType T>
void WidenTyped(const unsigned char* w, int64_t n, float* out) {
  constexpr int kBytes = Element<T>::kBytes;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) Ops::Store(out + i, Element<T>::Load(w + i * kBytes));
  if (i < n) StorePartial(out + i, LoadPartial<T>(w + i * kBytes, n - i), n - i);
}

// Many rows: blocks of the inner dimension, so that kRows rows of x stay in the first-level cache
// while a block of widened weights passes by from the second. The first rows widen the weights, the
// others find them widened. Vectors of partial sums are kept from one block to the next, so the
// order of summation is that of Tile.
constexpr int64_t kBlockInner = 640;   // at most, a multiple of every kLanes
constexpr int64_t kBlockRows = 96;     // a multiple of every kRows
constexpr int64_t kBlockColumns = 48;  // a multiple of every kCols
static_assert(kBlockInner % kLanes == 0 && kBlockRows % Ops::kRows == 0 &&
              kBlockColumns % Ops::kCols == 0);
static_assert(kBlockColumns * (kBlockInner + kBlockRows * kLanes) <= kMultiplyScratchFloats);

// A panel of kRows rows (or fewer) and kCols columns (or one), in one block of the inner dimension.
struct Panel {
  const float* x;  // of the first row, at the block's begin
  int64_t x_stride;
  const unsigned char* raw;  // of the first column, at the block's begin
  int64_t raw_stride;        // bytes
  float* widened;            // [steps][columns][kLanes], zeros at the end
  int64_t inner;             // of the block
  float* partial;            // [rows][columns][kLanes]
  bool first, last;          // of the blocks
  const float* ahead;        // as many floats to fetch into the second-level cache meanwhile
  const float* bias;
  float* y;
  int64_t y_stride;
};

// Where a panel's weights come from.
template <WeightType T, int N>
struct Widening {
  explicit Widening(const Panel& p) : raw(p.raw), stride(p.raw_stride), out(p.widened) {}
  [[gnu::always_inline]] void Load(V (&weights)[N]) {
    EVALD_UNROLL
    for (int n = 0; n < N; ++n) {
      __builtin_prefetch(raw + (n + N) * stride, 0, 2);  // the next panel's
      weights[n] = Element<T>::Load(raw + n * stride);
      Ops::Store(out + n * kLanes, weights[n]);
    }
    raw += kLanes * Element<T>::kBytes;
    out += N * kLanes;
  }
  [[gnu::always_inline]] void LoadLast(V (&weights)[N], int64_t count) {
    EVALD_UNROLL
    for (int n = 0; n < N; ++n) {
      weights[n] = LoadPartial<T>(raw + n * stride, count);
      Ops::Store(out + n * kLanes, weights[n]);
    }
  }
  const unsigned char* raw;
  int64_t stride;
  float* out;
};

template <int N>
struct Widened {
  explicit Widened(const Panel& p) : next(p.widened), ahead(p.ahead) {}
  [[gnu::always_inline]] void Load(V (&weights)[N]) {
    __builtin_prefetch(ahead, 0, 2);
    ahead += kLanes;
    EVALD_UNROLL
    for (int n = 0; n < N; ++n) weights[n] = Ops::Load(next + n * kLanes);
    next += N * kLanes;
  }
  [[gnu::always_inline]] void LoadLast(V (&weights)[N], int64_t) { Load(weights); }
  const float* next;
  const float* ahead;
};

template <typename Weights, int R, int N>
void PanelTile(const Panel& p) {
  V sums[R][N];
  EVALD_UNROLL
  for (int r = 0; r < R; ++r) {
    EVALD_UNROLL
    for (int n = 0; n < N; ++n) {
      sums[r][n] = p.first ? Ops::Zero() : Ops::Load(p.partial + (r * N + n) * kLanes);
    }
  }
  Weights source(p);
  V weights[N];
  const float* x = p.x;
  const int64_t stride = p.x_stride;
  const float* end = x + p.inner / kLanes * kLanes;
  for (; x != end; x += kLanes) {
    source.Load(weights);
    EVALD_UNROLL
    for (int r = 0; r < R; ++r) {
      const V value = Ops::Load(x + r * stride);
      EVALD_UNROLL
      for (int n = 0; n < N; ++n) sums[r][n] = Ops::Fma(value, weights[n], sums[r][n]);
    }
  }
  if (p.inner % kLanes != 0) {
    source.LoadLast(weights, p.inner % kLanes);
    EVALD_UNROLL
    for (int r = 0; r < R; ++r) {
      const V value = LoadFloats(x + r * stride, p.inner % kLanes);
      EVALD_UNROLL
      for (int n = 0; n < N; ++n) sums[r][n] = Ops::Fma(value, weights[n], sums[r][n]);
    }
  }
  if (p.last) return Reduce<R, N>(sums, p.bias, p.y, p.y_stride);
  EVALD_UNROLL
  for (int r = 0; r < R; ++r) {
    EVALD_UNROLL
    for (int n = 0; n < N; ++n) Ops::Store(p.partial + (r * N + n) * kLanes, sums[r][n]);
  }
}

template <typename Weights, int N>
struct PanelOf {
  template <int R>
  struct Rows {
    static void Call(const Panel* panel) { PanelTile<Weights, R, N>(*panel); }
  };
};

template <WeightType T, int N>
void MultiplyPanel(const Panel& panel, int64_t rows, bool widened) {
  if (widened) {
    WithRows<PanelOf<Widened<N>, N>::template Rows>(rows, &panel);
  } else {
    WithRows<PanelOf<Widening<T, N>, N>::template Rows>(rows, &panel);
  }
}

// At most kBlockRows x kBlockColumns results, and a part of the inner dimension.
struct Block {
  int64_t row, row_end, first, end, begin, inner;
};

template <WeightType T>
void MultiplyBlock(const MultiplyArgs& a, const Block& b) {
  const int64_t padded = (b.inner + kLanes - 1) / kLanes * kLanes;
  Panel p{};
  p.x_stride = a.inner;
  p.raw_stride = a.inner * Element<T>::kBytes;
  p.inner = b.inner;
  p.partial = a.scratch + kBlockColumns * kBlockInner;
  p.first = b.begin == 0;
  p.last = b.begin + b.inner == a.inner;
  p.y_stride = a.y_stride;
  for (int64_t row = b.row; row < b.row_end; row += Ops::kRows) {
    const int64_t rows = b.row_end - row < Ops::kRows ? b.row_end - row : Ops::kRows;
    p.x = a.x + row * a.inner + b.begin;
    p.raw = static_cast<const unsigned char*>(a.weights) + b.first * p.raw_stride +
            b.begin * Element<T>::kBytes;
    p.widened = a.scratch;
    p.ahead = p.x + Ops::kRows * a.inner;  // each panel fetches one of the next rows
    for (int64_t n = b.first; n < b.end;) {
      const int64_t columns = b.end - n < Ops::kCols ? 1 : Ops::kCols;
      p.bias = a.bias == nullptr ? nullptr : a.bias + n;
      p.y = a.y + row * a.y_stride + n;
      if (columns == 1) {
        MultiplyPanel<T, 1>(p, rows, row > b.row);
      } else {
        MultiplyPanel<T, Ops::kCols>(p, rows, row > b.row);
      }
      p.raw += columns * p.raw_stride;
      p.widened += columns * padded;
      p.partial += columns * rows * kLanes;
      p.ahead += a.inner;
      n += columns;
    }
  }
}

template <WeightType T>
void MultiplyBlocked(const MultiplyArgs& a) {
  const int64_t blocks = (a.inner + kBlockInner - 1) / kBlockInner;
  const int64_t step = ((a.inner + blocks - 1) / blocks + kLanes - 1) / kLanes * kLanes;
  const auto least = [](int64_t x, int64_t y) { return x < y ? x : y; };
  for (int64_t first = a.first; first < a.end; first += kBlockColumns) {
    for (int64_t row = 0; row < a.rows; row += kBlockRows) {
      for (int64_t begin = 0; begin < a.inner; begin += step) {
        MultiplyBlock<T>(
            a, {row, least(a.rows, row + kBlockRows), first, least(a.end, first + kBlockColumns),
                begin, least(a.inner - begin, step)});
      }
    }
  }
}

template <WeightType T>
void MultiplyTyped(const MultiplyArgs& a) {
  if (a.rows > 2 * Ops::kRows) return MultiplyBlocked<T>(a);
  MultiplyInPlace<T>(a);
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

// Rows that pass over the keys and values together: a page's are read once for all of them.
constexpr int kAttendRows = 64;

// Calls F<R>::Call(args...) with R = rows, which is at most Most and at most 8.
template <int Most, template <int> class F, typename... Args>
void WithSome(int rows, Args... args) {
  static_assert(Most <= 8);
  switch (rows) {
    case 8:
      return F<(Most < 8 ? 1 : 8)>::Call(args...);
    case 7:
      return F<(Most < 7 ? 1 : 7)>::Call(args...);
    case 6:
      return F<(Most < 6 ? 1 : 6)>::Call(args...);
    case 5:
      return F<(Most < 5 ? 1 : 5)>::Call(args...);
    case 4:
      return F<(Most < 4 ? 1 : 4)>::Call(args...);
    case 3:
      return F<(Most < 3 ? 1 : 3)>::Call(args...);
    case 2:
      return F<2>::Call(args...);
    default:
      return F<1>::Call(args...);
  }
}

const float* Query(const AttendArgs& a, int row) {
  return a.q + row / a.group * a.q_stride + row % a.group * a.head_dim;
}

float* Out(const AttendArgs& a, int row) {
  return a.out + row / a.group * a.out_stride + row % a.group * a.head_dim;
}

int64_t Seen(const AttendArgs& a, int row) { return a.first_position + row / a.group + 1; }

// Scores of R query rows against kScoreVecs * kLanes keys, each a sum over the head's dimensions in
// order.
template <int R>
void Scores(const float* const* q, const float* keys, int head_dim, float* out, int64_t stride) {
  V sums[R][Ops::kScoreVecs];
  EVALD_UNROLL
  for (int r = 0; r < R; ++r) {
    EVALD_UNROLL
    for (int v = 0; v < Ops::kScoreVecs; ++v) sums[r][v] = Ops::Zero();
  }
  for (int d = 0; d < head_dim; ++d) {
    V key[Ops::kScoreVecs];
    EVALD_UNROLL
    for (int v = 0; v < Ops::kScoreVecs; ++v) {
      const int offset = v * kLanes;
      key[v] = Ops::Load(keys + offset / kKeyBlock * head_dim * kKeyBlock + d * kKeyBlock +
                         offset % kKeyBlock);
    }
    EVALD_UNROLL
    for (int r = 0; r < R; ++r) {
      const V query = Ops::Set(q[r][d]);
      EVALD_UNROLL
      for (int v = 0; v < Ops::kScoreVecs; ++v) sums[r][v] = Ops::Fma(query, key[v], sums[r][v]);
    }
  }
  EVALD_UNROLL
  for (int r = 0; r < R; ++r) {
    EVALD_UNROLL
    for (int v = 0; v < Ops::kScoreVecs; ++v) Ops::Store(out + r * stride + v * kLanes, sums[r][v]);
  }
}

// Scores of R rows against the keys [begin, end) of one page; `scores` are the first row's.
template <int R>
struct ScoreTile {
  static void Call(const AttendArgs* a, int first_row, int64_t begin, int64_t end, float* scores,
                   int64_t stride) {
    constexpr int kStep = Ops::kScoreVecs * kLanes;
    static_assert(kStep % kKeyBlock == 0 && kPagePositions % kStep == 0);
    const float* q[R];
    for (int r = 0; r < R; ++r) q[r] = Query(*a, first_row + r);
    const float* keys = a->pages[begin / kPagePositions] + a->key_offset;
    for (int64_t j = begin; j < end; j += kStep) {
      Scores<R>(q, keys + (j - begin) * a->head_dim, a->head_dim, scores + j, stride);
    }
  }
};

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

V LoadUpTo(const float* p, int count) {
  return count >= kLanes ? Ops::Load(p) : LoadFloats(p, count);
}

void StoreUpTo(float* p, V v, int count) {
  if (count >= kLanes) {
    Ops::Store(p, v);
  } else if (count > 0) {
    StorePartial(p, v, count);
  }
}

// Adds weighted values of the keys [begin, end) of one page to N vectors of the output of R rows,
// in order of key position; begins at zero with the first page.
template <int R, int N>
void Values(const AttendArgs& a, int first_row, int64_t begin, int64_t end, const float* weights,
            int64_t stride, int dimension) {
  V sums[R][N];
  EVALD_UNROLL
  for (int r = 0; r < R; ++r) {
    EVALD_UNROLL
    for (int n = 0; n < N; ++n) {
      const int d = dimension + n * kLanes;
      sums[r][n] = begin == 0 || d >= a.head_dim
                       ? Ops::Zero()
                       : LoadUpTo(Out(a, first_row + r) + d, a.head_dim - d);
    }
  }
  const float* value = a.pages[begin / kPagePositions] + a.value_offset + dimension;
  for (int64_t j = begin; j < end; ++j, value += a.value_stride) {
    V v[N];
    EVALD_UNROLL
    for (int n = 0; n < N; ++n) v[n] = Ops::Load(value + n * kLanes);
    EVALD_UNROLL
    for (int r = 0; r < R; ++r) {
      const V weight = Ops::Set(weights[r * stride + j]);
      EVALD_UNROLL
      for (int n = 0; n < N; ++n) sums[r][n] = Ops::Fma(weight, v[n], sums[r][n]);
    }
  }
  EVALD_UNROLL
  for (int r = 0; r < R; ++r) {
    EVALD_UNROLL
    for (int n = 0; n < N; ++n) {
      const int d = dimension + n * kLanes;
      StoreUpTo(Out(a, first_row + r) + d, sums[r][n], a.head_dim - d);
    }
  }
}

template <int R>
struct ValueTile {
  static void Call(const AttendArgs* a, int first_row, int64_t begin, int64_t end,
                   const float* weights, int64_t stride) {
    constexpr int kStep = Ops::kValueVecs * kLanes;
    int d = 0;
    for (; d + kStep <= a->value_stride; d += kStep) {
      Values<R, Ops::kValueVecs>(*a, first_row, begin, end, weights, stride, d);
    }
    for (; d < a->head_dim; d += kLanes) {
      Values<R, 1>(*a, first_row, begin, end, weights, stride, d);
    }
  }
};

void ScaleBy(float factor, float* x, int n) {
  const V f = Ops::Set(factor);
  for (int i = 0; i < n; i += kLanes) StoreUpTo(x + i, Ops::Mul(LoadUpTo(x + i, n - i), f), n - i);
}

// Rows [first, end), at most kAttendRows: all their scores, page by page, then all their weights,
// then all their values, page by page.
void AttendRows(const AttendArgs& a, int first, int end) {
  const int64_t keys = a.first_position + a.positions;
  const int64_t stride = ScoreStride(keys);
  const auto least = [](auto x, auto y) { return x < y ? x : y; };
  const auto scores_of = [&](int row) { return a.scratch + (row - first) * stride; };
  const int64_t seen_by_all = Seen(a, end - 1);
  for (int64_t begin = 0; begin < seen_by_all; begin += kPagePositions) {
    const int64_t page_end = least(begin + kPagePositions, seen_by_all);
    for (int row = first; row < end; row += Ops::kScoreRows) {
      WithSome<Ops::kScoreRows, ScoreTile>(least(end - row, Ops::kScoreRows), &a, row, begin,
                                           page_end, scores_of(row), stride);
    }
  }
  constexpr int kStep = Ops::kScoreVecs * kLanes;
  const int64_t padded = (seen_by_all + kStep - 1) / kStep * kStep;
  float inverse_sums[kAttendRows];
  for (int row = first; row < end; ++row) {
    const int64_t seen = Seen(a, row);
    const int64_t hidden = a.window > 0 && seen > a.window ? seen - a.window : 0;
    inverse_sums[row - first] = Softmax(scores_of(row), hidden, seen, padded, a.scale);
  }
  for (int64_t begin = 0; begin < seen_by_all; begin += kPagePositions) {
    for (int row = first; row < end; row += Ops::kValueRows) {
      const int rows = least(end - row, Ops::kValueRows);
      const int64_t page_end = least(begin + kPagePositions, Seen(a, row + rows - 1));
      if (begin >= page_end) continue;
      WithSome<Ops::kValueRows, ValueTile>(rows, &a, row, begin, page_end, scores_of(row), stride);
    }
  }
  for (int row = first; row < end; ++row) {
    ScaleBy(inverse_sums[row - first], Out(a, row), a.head_dim);
  }
}

void Attend(const AttendArgs& a) {
  const int rows = a.positions * a.group;
  for (int row = 0; row < rows; row += kAttendRows) {
    AttendRows(a, row, row + kAttendRows < rows ? row + kAttendRows : rows);
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
