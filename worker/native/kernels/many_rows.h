#pragma once
// Products with many rows of x. Both operands are laid out anew, lane by lane in the order of
// summation of few_rows.h: x once for the whole product (PackRows); the weights, widened to fp32, a
// panel of columns and a block of the inner dimension at a time. A tile then adds up one lane of a
// few rows and one panel's columns in registers. Columns lie along the vectors, so that nothing has
// to be added across a vector.
//
// A panel stays in the second-level cache while all rows pass by; a lane of a few rows stays in the
// first-level cache.

#include <cstdint>

#include "worker/native/kernels/few_rows.h"

namespace evald::native {
namespace {

constexpr int kPanelWidth = Ops::kTileVecs * kLanes;            // columns
constexpr int64_t kLaneFloats = kChain * kPanelWidth + kLanes;  // a lane; not a power of two
constexpr int64_t kPanelFloats = kLanes * kLaneFloats;
constexpr int64_t kGroupPanels = 3;  // panels that pass over a block of rows together
constexpr int64_t kTileFloats = Ops::kTileRows * kPanelWidth;

// Rows are cut into blocks of nearly the same size, so that no tile is much smaller than others.
int64_t RowBlocks(int64_t rows) { return (rows + Ops::kTileRows - 1) / Ops::kTileRows; }

struct RowRange {
  RowRange(int64_t all, int64_t block)
      : first(all * block / RowBlocks(all)), count(all * (block + 1) / RowBlocks(all) - first) {}
  int64_t first, count;
};

int64_t BlockedFloats(int64_t rows, int64_t inner) {
  return (inner + kInnerBlock - 1) / kInnerBlock * kInnerBlock * rows;
}

// Lays out x[rows][inner] as [inner block][row block][lane][row][kChain]. Lanes that end before the
// others are filled with zeros.
template <typename Unit>
void BlockRows(const float* x, int64_t rows, int64_t inner, int64_t row_block, float* packed) {
  const RowRange range(rows, row_block);
  for (int64_t begin = 0; begin < inner; begin += kInnerBlock) {
    const int64_t count = inner - begin < kInnerBlock ? inner - begin : kInnerBlock;
    float* to = packed + begin * rows + range.first * kInnerBlock;
    for (int64_t row = 0; row < range.count; ++row) {
      const float* from = x + ((range.first + row) * inner + begin) * Unit::kNumbers;
      for (int64_t i = 0; i < count; i += kLanes * kLanes) {
        V v[kLanes];
        for (int n = 0; n < kLanes; ++n) {
          const int64_t at = i + n * kLanes;
          v[n] = Unit::LoadRow(from + at * Unit::kNumbers, count - at);
        }
        Ops::Transpose(v);
        for (int lane = 0; lane < kLanes; ++lane) {
          Ops::Store(to + (lane * range.count + row) * kChain + i / kLanes, v[lane]);
        }
      }
    }
  }
}

// The number of inner positions of kLanes columns that are transposed together.
template <WeightType T>
constexpr int kTurned = T == WeightType::kBF16 ? 2 * kLanes : kLanes;

// kTurned positions of one column; bf16 stays in pairs.
template <WeightType T>
[[gnu::always_inline]] inline V LoadRaw(const unsigned char* p, int64_t count) {
  if constexpr (T == WeightType::kBF16) {
    if (count >= kTurned<T>) return Ops::Load(reinterpret_cast<const float*>(p));
    alignas(64) unsigned char buffer[kTurned<T> * 2] = {};
    std::memcpy(buffer, p, static_cast<size_t>(count) * 2);
    return Ops::Load(reinterpret_cast<const float*>(buffer));
  } else {
    return count >= kLanes ? Element<T>::Load(p) : LoadPartial<T>(p, count);
  }
}

// The columns' weights at position i, after the transposition.
template <WeightType T>
[[gnu::always_inline]] inline V Turned(const V (&v)[kLanes], int i) {
  if constexpr (T == WeightType::kBF16) {
    return i % 2 == 0 ? Ops::WidenEven(v[i / 2]) : Ops::WidenOdd(v[i / 2]);
  } else {
    return v[i];
  }
}

// Packs the positions [0, count) of `columns` columns, at most a panel's. Missing columns repeat
// the last one. A panel is [lane][kChain][kPanelWidth].
template <WeightType T>
void PackPanel(const unsigned char* w, int64_t stride, int64_t columns, int64_t count,
               float* panel) {
  constexpr int kSteps = kTurned<T> / kLanes;
  for (int64_t i = 0; i < count; i += kTurned<T>) {
    for (int64_t first = 0; first < kPanelWidth; first += kLanes) {
      const unsigned char* at = w + i * Element<T>::kBytes;
      V v[kLanes];
      if (first + kLanes <= columns && i + kTurned<T> <= count) {
        EVALD_UNROLL
        for (int n = 0; n < kLanes; ++n) {
          v[n] = LoadRaw<T>(at + (first + n) * stride, kTurned<T>);
        }
      } else {
        for (int n = 0; n < kLanes; ++n) {
          const int64_t column = first + n < columns ? first + n : columns - 1;
          v[n] = LoadRaw<T>(at + column * stride, count - i);
        }
      }
      Ops::Transpose(v);
      float* to = panel + i / kLanes * kPanelWidth + first;
      EVALD_UNROLL
      for (int lane = 0; lane < kLanes; ++lane) {
        EVALD_UNROLL
        for (int step = 0; step < kSteps; ++step) {
          Ops::Store(to + lane * kLaneFloats + step * kPanelWidth,
                     Turned<T>(v, step * kLanes + lane));
        }
      }
    }
  }
}

// The place of a lane in the order of summation, which decides where its sums go.
enum class LanePlace { kBegin, kMiddle, kEndFirst, kEnd };

struct LaneTile {
  const float* x;      // [R][kChain]
  const float* panel;  // [kChain][kPanelWidth]
  int64_t chain;       // positions
  LanePlace place;
  float* group;  // [R][kPanelWidth]: the lanes of a group so far
  float* total;  // [R][kPanelWidth]: the groups so far
  // Bytes to prefetch meanwhile: at each position `fetch_step` bytes further.
  const unsigned char* fetch;
  int64_t fetch_step;
};

template <int R>
[[gnu::always_inline]] inline void PutSums(const V (&sums)[R][Ops::kTileVecs], const LaneTile& t) {
  EVALD_UNROLL
  for (int r = 0; r < R; ++r) {
    EVALD_UNROLL
    for (int n = 0; n < Ops::kTileVecs; ++n) {
      const int64_t at = r * kPanelWidth + n * kLanes;
      if (t.place == LanePlace::kBegin) {
        Ops::Store(t.group + at, sums[r][n]);
        continue;
      }
      const V group = Ops::Add(Ops::Load(t.group + at), sums[r][n]);
      if (t.place == LanePlace::kMiddle) {
        Ops::Store(t.group + at, group);
      } else if (t.place == LanePlace::kEndFirst) {
        Ops::Store(t.total + at, group);
      } else {
        Ops::Store(t.total + at, Ops::Add(Ops::Load(t.total + at), group));
      }
    }
  }
}

// The lane's sums of R rows and a panel's columns.
template <typename Unit, int R>
void AddLane(const LaneTile* t) {
  constexpr int kFar = 8;  // positions; from the second-level cache into the first
  V sums[R][Ops::kTileVecs];
  EVALD_UNROLL
  for (int r = 0; r < R; ++r) {
    EVALD_UNROLL
    for (int n = 0; n < Ops::kTileVecs; ++n) sums[r][n] = Ops::Zero();
  }
  const float* x = t->x;
  const float* panel = t->panel;
  const unsigned char* fetch = t->fetch;
  for (int64_t i = 0; i < t->chain; ++i) {
    V weights[Ops::kTileVecs];
    EVALD_UNROLL
    for (int n = 0; n < Ops::kTileVecs; ++n) {
      weights[n] = Ops::Load(panel + n * kLanes);
      __builtin_prefetch(panel + kFar * kPanelWidth + n * kLanes, 0, 3);
    }
    panel += kPanelWidth;
    __builtin_prefetch(fetch, 0, 2);
    fetch += t->fetch_step;
    __builtin_prefetch(t->x + R * kChain + i * 16, 0, 3);  // the next lane of these rows
    EVALD_UNROLL
    for (int r = 0; r < R; ++r) {
      const V value = Ops::Set(x[r * kChain + i]);
      EVALD_UNROLL
      for (int n = 0; n < Ops::kTileVecs; ++n) {
        sums[r][n] = Unit::MultiplyAdd(value, weights[n], sums[r][n]);
      }
    }
  }
  PutSums<R>(sums, *t);
}

template <typename Unit>
struct LaneOf {
  template <int R>
  struct Rows {
    static void Call(const LaneTile* t) { AddLane<Unit, R>(t); }
  };
};

// Several panels of a product and their place in the thread's scratch memory.
struct PanelGroup {
  int64_t first, end;  // columns
  float* panels;       // [panel][kPanelFloats]
  float* groups;       // [panel][kTileFloats]
  float* totals;       // [row block][panel][row][kPanelWidth]
  int64_t count() const { return (end - first + kPanelWidth - 1) / kPanelWidth; }
};

int64_t MultiplyScratchFloats(int64_t rows) {
  return kGroupPanels * (kPanelFloats + kTileFloats + rows * kPanelWidth);
}

// The weights that the product's next block reads. Each tile prefetches one row of them.
struct Ahead {
  const unsigned char* at;
  int64_t stride, rows, step;
};

template <WeightType T>
Ahead NextBlock(const MultiplyArgs& a, const PanelGroup& group, int64_t begin, int64_t count) {
  constexpr int kBytes = Element<T>::kBytes;
  const auto* w = static_cast<const unsigned char*>(a.weights);
  const int64_t stride = a.inner * kBytes, left = a.inner - begin - count;
  const auto step = [&](int64_t next) {
    return (next < kInnerBlock ? next : kInnerBlock) * kBytes * kLanes / (count + kLanes - 1);
  };
  if (left > 0) {
    return {w + group.first * stride + (begin + count) * kBytes, stride, group.end - group.first,
            step(left)};
  }
  // Behind the last columns lie the next task's.
  return {w + group.end * stride, stride, kGroupPanels * kPanelWidth, step(a.inner)};
}

LanePlace PlaceOf(int lane, bool first_block) {
  const int in_group = lane % kLaneGroup;
  if (in_group == 0) return LanePlace::kBegin;
  if (in_group + 1 < kLaneGroup) return LanePlace::kMiddle;
  return first_block && lane < kLaneGroup ? LanePlace::kEndFirst : LanePlace::kEnd;
}

// Writes the sums of a block of rows to y.
void PutRows(const MultiplyArgs& a, const PanelGroup& group, const RowRange& range) {
  const int64_t panels = group.count();
  const float* totals = group.totals + range.first * panels * kPanelWidth;
  for (int64_t row = 0; row < range.count; ++row) {
    float* y = a.y + (range.first + row) * a.y_stride;
    for (int64_t n = group.first; n < group.end; n += kLanes) {
      const int64_t panel = (n - group.first) / kPanelWidth;
      V v = Ops::Load(totals + (panel * range.count + row) * kPanelWidth +
                      (n - group.first) % kPanelWidth);
      if (a.bias != nullptr) v = Ops::Add(v, LoadUpTo(a.bias + n, group.end - n));
      StoreUpTo(y + n, v, group.end - n);
    }
  }
}

// Prefetches a part of a row of results before it is needed: results lie in distant memory.
void FetchOut(const MultiplyArgs& a, const PanelGroup& group, int64_t row) {
  const float* y = a.y + row * a.y_stride;
  for (int64_t n = group.first; n < group.end; n += 16) __builtin_prefetch(y + n, 1, 3);
}

// Adds up all lanes of a block of rows, over the inner dimension [begin, begin + count).
template <typename Unit>
void AddLanes(const MultiplyArgs& a, const PanelGroup& group, const RowRange& range, int64_t begin,
              int64_t count, Ahead* ahead) {
  const int64_t panels = group.count();
  const bool last = begin + count == a.inner;
  LaneTile tile;
  tile.chain = (count + kLanes - 1) / kLanes;
  for (int lane = 0; lane < kLanes; ++lane) {
    tile.x = a.x + begin * a.rows + range.first * kInnerBlock + lane * range.count * kChain;
    tile.place = PlaceOf(lane, begin == 0);
    for (int64_t panel = 0; panel < panels; ++panel) {
      tile.panel = group.panels + panel * kPanelFloats + lane * kLaneFloats;
      tile.group = group.groups + panel * kTileFloats;
      tile.total = group.totals + (range.first * panels + panel * range.count) * kPanelWidth;
      tile.fetch = ahead->at;
      tile.fetch_step = ahead->step;
      if (ahead->rows > 1) {
        ahead->at += ahead->stride;
        --ahead->rows;
      } else {
        ahead->step = 0;
      }
      WithRows<Ops::kTileRows, LaneOf<Unit>::template Rows>(range.count, &tile);
    }
    if (!last) continue;
    for (int64_t row = lane; row < range.count; row += kLanes) {
      FetchOut(a, group, range.first + row);
    }
  }
  if (last) PutRows(a, group, range);
}

template <WeightType T, typename Unit>
void MultiplyGroup(const MultiplyArgs& a, const PanelGroup& group) {
  constexpr int kBytes = Element<T>::kBytes;
  const int64_t stride = a.inner * kBytes;
  for (int64_t begin = 0; begin < a.inner; begin += kInnerBlock) {
    const int64_t count = a.inner - begin < kInnerBlock ? a.inner - begin : kInnerBlock;
    for (int64_t panel = 0; panel < group.count(); ++panel) {
      const int64_t n = group.first + panel * kPanelWidth;
      PackPanel<T>(static_cast<const unsigned char*>(a.weights) + n * stride + begin * kBytes,
                   stride, group.end - n, count, group.panels + panel * kPanelFloats);
    }
    Ahead ahead = NextBlock<T>(a, group, begin, count);
    for (int64_t block = 0; block < RowBlocks(a.rows); ++block) {
      AddLanes<Unit>(a, group, RowRange(a.rows, block), begin, count, &ahead);
    }
  }
}

template <WeightType T, typename Unit>
void MultiplyManyRows(const MultiplyArgs& a) {
  const int64_t panels = (a.end - a.first + kPanelWidth - 1) / kPanelWidth;
  const int64_t groups = (panels + kGroupPanels - 1) / kGroupPanels;
  for (int64_t i = 0; i < groups; ++i) {
    PanelGroup group;
    group.first = a.first + panels * i / groups * kPanelWidth;
    const int64_t end = a.first + panels * (i + 1) / groups * kPanelWidth;
    group.end = end < a.end ? end : a.end;
    group.panels = a.scratch;
    group.groups = group.panels + kGroupPanels * kPanelFloats;
    group.totals = group.groups + kGroupPanels * kTileFloats;
    MultiplyGroup<T, Unit>(a, group);
  }
}

}  // namespace
}  // namespace evald::native
