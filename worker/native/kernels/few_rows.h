#pragma once
// Products with few rows of x. The weights are read once, as they lie in the file, so that only
// memory limits the speed.
//
// This file and many_rows.h work with numbers or with pairs (vectors.h). "Position" below means the
// place of either.
//
// Order of summation, in this file and in many_rows.h: the inner dimension is cut into blocks of
// kInnerBlock. In a block, lane l adds up the positions l, l + kLanes, l + 2 kLanes ... one after
// the other. Then lanes are added in groups of four, ((l0 + l1) + l2) + l3, and group after group
// is added to the sum of the earlier blocks.

#include <cstdint>

#include "worker/native/kernels/vectors.h"

namespace evald::native {
namespace {

constexpr int kLaneGroup = 4;
constexpr int kChain = 64;  // positions of one lane in a block
constexpr int64_t kInnerBlock = kChain * kLanes;
static_assert(kLanes % kLaneGroup == 0);

// Adds the lanes of R rows of N vectors to y. If `first`, y is overwritten.
template <int R, int N>
[[gnu::always_inline]] inline void AddUp(const V (&sums)[R][N], bool first, const float* bias,
                                         float* y, int64_t y_stride) {
  EVALD_UNROLL
  for (int r = 0; r < R; ++r) {
    EVALD_UNROLL
    for (int n = 0; n < N; n += 4) {
      float* to = y + r * y_stride + n;
      float totals[4] = {};
      for (int i = 0; i < 4 && n + i < N; ++i) totals[i] = first ? 0 : to[i];
      Ops::AddUp4(sums[r][n], sums[r][n + 1 < N ? n + 1 : n], sums[r][n + 2 < N ? n + 2 : n],
                  sums[r][n + 3 < N ? n + 3 : n], first, totals);
      for (int i = 0; i < 4 && n + i < N; ++i) {
        to[i] = bias == nullptr ? totals[i] : totals[i] + bias[n + i];
      }
    }
  }
}

// Multiplies R rows of x by N rows of weights, and prefetches the weights `ahead` bytes further.
template <WeightType T, typename Unit, int R, int N>
void InPlaceTile(const float* x, const unsigned char* w, int64_t inner, int64_t ahead,
                 const float* bias, float* y, int64_t y_stride) {
  constexpr int kBytes = Element<T>::kBytes;
  int64_t i = 0;
  do {
    const int64_t end = i + kInnerBlock < inner ? i + kInnerBlock : inner;
    const bool first = i == 0;
    V sums[R][N];
    EVALD_UNROLL
    for (int r = 0; r < R; ++r) {
      EVALD_UNROLL
      for (int n = 0; n < N; ++n) sums[r][n] = Ops::Zero();
    }
    for (; i + kLanes <= end; i += kLanes) {
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
        for (int n = 0; n < N; ++n) sums[r][n] = Unit::MultiplyAdd(value, weights[n], sums[r][n]);
      }
    }
    if (i < end) {
      EVALD_UNROLL
      for (int n = 0; n < N; ++n) {
        const V weights = LoadPartial<T>(w + (n * inner + i) * kBytes, end - i);
        EVALD_UNROLL
        for (int r = 0; r < R; ++r) {
          const V value = LoadFloats(x + r * inner + i, end - i);
          sums[r][n] = Unit::MultiplyAdd(value, weights, sums[r][n]);
        }
      }
      i = end;
    }
    AddUp<R, N>(sums, first, end == inner ? bias : nullptr, y, y_stride);
  } while (i < inner);
}

template <WeightType T, typename Unit, int N>
struct InPlace {
  // The distance to prefetch: if rows are short, to the next N, which lie right behind; if they are
  // long, further on in each row.
  static int64_t Ahead(const MultiplyArgs& a) {
    constexpr int64_t kShort = 4096, kFar = 1024;
    const int64_t row_bytes = a.inner * Element<T>::kBytes;
    return row_bytes > kShort ? kFar : N * row_bytes;
  }

  template <int R>
  struct Rows {
    static void Call(const MultiplyArgs* a, int64_t row, int64_t n) {
      InPlaceTile<T, Unit, R, N>(
          a->x + row * a->inner,
          static_cast<const unsigned char*>(a->weights) + n * a->inner * Element<T>::kBytes,
          a->inner, Ahead(*a), a->bias == nullptr ? nullptr : a->bias + n,
          a->y + row * a->y_stride + n, a->y_stride);
    }
  };
};

template <WeightType T, typename Unit>
void MultiplyFewRows(const MultiplyArgs& a) {
  int64_t n = a.first;
  for (; n + Ops::kCols <= a.end; n += Ops::kCols) {
    for (int64_t row = 0; row < a.rows; row += Ops::kRows) {
      const int64_t rows = a.rows - row < Ops::kRows ? a.rows - row : Ops::kRows;
      WithRows<Ops::kRows, InPlace<T, Unit, Ops::kCols>::template Rows>(rows, &a, row, n);
    }
  }
  for (; n < a.end; ++n) {
    for (int64_t row = 0; row < a.rows; row += Ops::kRows) {
      const int64_t rows = a.rows - row < Ops::kRows ? a.rows - row : Ops::kRows;
      WithRows<Ops::kRows, InPlace<T, Unit, 1>::template Rows>(rows, &a, row, n);
    }
  }
}

}  // namespace
}  // namespace evald::native
