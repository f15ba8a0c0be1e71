#pragma once
// Attention over pages of keys and values.

#include <cstdint>

#include "worker/native/kernels/soft_cap.h"
#include "worker/native/kernels/vectors.h"

namespace evald::native {
namespace {

// Query rows that pass over the keys and values together: a page's keys and values are read once
// for all of them.
constexpr int kAttendRows = 64;

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

// Rows that see one page, their scores, and the keys [begin, end) of that page.
struct PageRows {
  const AttendRow* rows;
  float* scores;  // of the first row, by position
  int64_t stride;
  int64_t begin, end;
  const float* page() const { return rows[0].pages[begin / kPagePositions]; }
};

template <int R>
struct ScoreTile {
  static void Call(const AttendArgs* a, const PageRows* p) {
    constexpr int kStep = Ops::kScoreVecs * kLanes;
    static_assert(kStep % kKeyBlock == 0 && kPagePositions % kStep == 0);
    const float* q[R];
    for (int r = 0; r < R; ++r) q[r] = p->rows[r].q;
    const float* keys = p->page() + a->key_offset;
    for (int64_t j = p->begin; j < p->end; j += kStep) {
      Scores<R>(q, keys + (j - p->begin) * a->head_dim, a->head_dim, p->scores + j, p->stride);
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

// Adds the weighted values of one page to N vectors of R rows' output, in order of key position.
// The first page begins at zero.
template <int R, int N>
void Values(const AttendArgs& a, const PageRows& p, int dimension) {
  V sums[R][N];
  EVALD_UNROLL
  for (int r = 0; r < R; ++r) {
    EVALD_UNROLL
    for (int n = 0; n < N; ++n) {
      const int d = dimension + n * kLanes;
      sums[r][n] = p.begin == 0 || d >= a.head_dim ? Ops::Zero()
                                                   : LoadUpTo(p.rows[r].out + d, a.head_dim - d);
    }
  }
  const float* value = p.page() + a.value_offset + dimension;
  for (int64_t j = p.begin; j < p.end; ++j, value += a.value_stride) {
    V v[N];
    EVALD_UNROLL
    for (int n = 0; n < N; ++n) v[n] = Ops::Load(value + n * kLanes);
    EVALD_UNROLL
    for (int r = 0; r < R; ++r) {
      const V weight = Ops::Set(p.scores[r * p.stride + j]);
      EVALD_UNROLL
      for (int n = 0; n < N; ++n) sums[r][n] = Ops::Fma(weight, v[n], sums[r][n]);
    }
  }
  EVALD_UNROLL
  for (int r = 0; r < R; ++r) {
    EVALD_UNROLL
    for (int n = 0; n < N; ++n) {
      const int d = dimension + n * kLanes;
      StoreUpTo(p.rows[r].out + d, sums[r][n], a.head_dim - d);
    }
  }
}

template <int R>
struct ValueTile {
  static void Call(const AttendArgs* a, const PageRows* p) {
    constexpr int kStep = Ops::kValueVecs * kLanes;
    int d = 0;
    for (; d + kStep <= a->value_stride; d += kStep) Values<R, Ops::kValueVecs>(*a, *p, d);
    for (; d < a->head_dim; d += kLanes) Values<R, 1>(*a, *p, d);
  }
};

void ScaleBy(float factor, float* x, int n) {
  const V f = Ops::Set(factor);
  for (int i = 0; i < n; i += kLanes) StoreUpTo(x + i, Ops::Mul(LoadUpTo(x + i, n - i), f), n - i);
}

// Calls Tile<R>::Call for all rows that see the page that begins at `begin`: at most Most rows at a
// time, and only rows that share this page.
template <int Most, template <int> class Tile>
void ForPage(const AttendArgs& a, const AttendRow* rows, int count, int64_t begin, int64_t stride) {
  for (int row = 0; row < count;) {
    if (rows[row].end <= begin) {
      ++row;
      continue;
    }
    const float* page = rows[row].pages[begin / kPagePositions];
    int64_t end = 0;
    int next = row;
    for (; next < count && next < row + Most && rows[next].end > begin &&
           rows[next].pages[begin / kPagePositions] == page;
         ++next) {
      if (rows[next].end > end) end = rows[next].end;
    }
    if (end > begin + kPagePositions) end = begin + kPagePositions;
    const PageRows p{rows + row, a.scratch + row * stride, stride, begin, end};
    WithRows<Most, Tile>(next - row, &a, &p);
    row = next;
  }
}

// Computes at most kAttendRows rows: all their scores, page by page, then all their weights, then
// all their values, page by page.
void AttendRows(const AttendArgs& a, const AttendRow* rows, int count) {
  int64_t end = 0;
  for (int row = 0; row < count; ++row) end = rows[row].end > end ? rows[row].end : end;
  const int64_t stride = ScoreStride(end);
  for (int64_t begin = 0; begin < end; begin += kPagePositions) {
    ForPage<Ops::kScoreRows, ScoreTile>(a, rows, count, begin, stride);
  }
  float inverse_sums[kAttendRows];
  constexpr int64_t kStep = Ops::kScoreVecs * kLanes;
  for (int row = 0; row < count; ++row) {
    const int64_t padded = (rows[row].end + kStep - 1) / kStep * kStep;
    float* scores = a.scratch + row * stride;
    if (a.cap > 0) SoftCap(scores, padded, a.scale, a.cap);
    inverse_sums[row] =
        Softmax(scores, rows[row].first, rows[row].end, padded, a.cap > 0 ? 1 : a.scale);
    // Rows beside this one may see more of the last page.
    for (int64_t j = padded; j < ScoreStride(rows[row].end); ++j) scores[j] = 0;
  }
  for (int64_t begin = 0; begin < end; begin += kPagePositions) {
    ForPage<Ops::kValueRows, ValueTile>(a, rows, count, begin, stride);
  }
  for (int row = 0; row < count; ++row) ScaleBy(inverse_sums[row], rows[row].out, a.head_dim);
}

void Attend(const AttendArgs& a) {
  for (int row = 0; row < a.count; row += kAttendRows) {
    AttendRows(a, a.rows + row, row + kAttendRows < a.count ? kAttendRows : a.count - row);
  }
}

}  // namespace
}  // namespace evald::native
