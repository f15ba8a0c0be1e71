#pragma once
// Attention over the pages of one sequence.

#include <cstdint>

#include "worker/native/kernels/vectors.h"

namespace evald::native {
namespace {

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

}  // namespace
}  // namespace evald::native
