#pragma once
// The kernels, written once over `Ops`, the vector operations of one instruction set. Each of
// portable.cc, avx2.cc, avx512.cc and avx512_bf16.cc defines Ops in an anonymous namespace and then
// includes this file. Everything is in the anonymous namespace: the linker must never pick code
// compiled for a newer instruction set for an older machine.
//
// Ops: V (a vector of kLanes floats), Zero, Set, Load, Store, Fma, Add, Sub, Mul, Div, Max, Min,
// Round, Pow2 (2^n of integral n in [-126, 127]), ZeroBelow (0 if x < limit, otherwise y), HMax,
// AddUp4 (the lanes of four vectors, in groups of four), Transpose (kLanes vectors), WidenBf16,
// WidenF16, WidenEven and WidenOdd (of bf16 in pairs). kDots: whether Ops has RoundToPairs (two
// vectors, to bf16) and DotPairs. Accumulators: kRows x kCols of a product with few rows, kTileRows
// x kTileVecs of one with many, kScoreRows x kScoreVecs of attention scores, kValueRows x
// kValueVecs of attention output.

#include "worker/native/kernels/attention.h"
#include "worker/native/kernels/many_rows.h"
#include "worker/native/kernels/rows.h"
#include "worker/native/kernels/soft_cap.h"

namespace evald::native {
namespace {

template <WeightType T, typename Unit>
void MultiplyTyped(const MultiplyArgs& a) {
  if (a.rows > Ops::kFewRows) return MultiplyManyRows<T, Unit>(a);
  MultiplyFewRows<T, Unit>(a);
}

void Multiply(const MultiplyArgs& a) {
  if constexpr (Ops::kDots) {
    if (InPairs(a.type, a.inner)) {
      MultiplyArgs pairs = a;
      pairs.inner = a.inner / 2;
      return MultiplyTyped<WeightType::kF32, Pairs>(pairs);  // 32 bits, moved unchanged
    }
  }
  switch (a.type) {
    case WeightType::kF32:
      return MultiplyTyped<WeightType::kF32, Numbers>(a);
    case WeightType::kF16:
      return MultiplyTyped<WeightType::kF16, Numbers>(a);
    case WeightType::kBF16:
      return MultiplyTyped<WeightType::kBF16, Numbers>(a);
  }
}

int64_t PackedFloats(int64_t rows, int64_t inner, WeightType type) {
  const bool pairs = InPairs(type, inner), few = rows <= Ops::kFewRows;
  if (few && !pairs) return 0;
  const int64_t units = pairs ? inner / 2 : inner;
  return few ? rows * units : BlockedFloats(rows, units);
}

void PackRows(const float* x, int64_t rows, int64_t inner, WeightType type, int64_t row_block,
              float* packed) {
  if constexpr (Ops::kDots) {
    if (InPairs(type, inner)) {
      if (rows > Ops::kFewRows) return BlockRows<Pairs>(x, rows, inner / 2, row_block, packed);
      const RowRange range(rows, row_block);
      const int64_t end = (range.first + range.count) * inner / 2;  // rows lie side by side
      for (int64_t i = range.first * inner / 2; i < end; i += kLanes) {
        StoreUpTo(packed + i, Pairs::LoadRow(x + 2 * i, end - i), end - i);
      }
      return;
    }
  }
  BlockRows<Numbers>(x, rows, inner, row_block, packed);
}

constexpr Kernels kKernels = {.name = Ops::kName,
                              .few_rows = Ops::kFewRows,
                              .panel_columns = kPanelWidth,
                              .row_blocks = RowBlocks,
                              .packed_floats = PackedFloats,
                              .pack_rows = PackRows,
                              .multiply_scratch_floats = MultiplyScratchFloats,
                              .multiply = Multiply,
                              .attend = Attend,
                              .rms_norm = RmsNorm,
                              .layer_norm = LayerNorm,
                              .activate = Activate,
                              .add = AddTo,
                              .widen = Widen,
                              .maximum = Maximum,
                              .sum_exp = SumExp,
                              .soft_cap = SoftCap,
                              .round = nullptr};

}  // namespace
}  // namespace evald::native
