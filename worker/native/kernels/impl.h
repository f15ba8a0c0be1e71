#pragma once
// The kernels, written once over `Ops`, the vector operations of one instruction set. Each of
// portable.cc, avx2.cc and avx512.cc defines Ops in an anonymous namespace and includes this file
// after it. Everything is in the anonymous namespace: code compiled for a newer instruction set
// must never be picked by the linker for an older machine.
//
// Ops: V (a vector of kLanes floats), Zero, Set, Load, Store, Fma, Add, Sub, Mul, Div, Max, Min,
// Round, Pow2 (2^n of integral n in [-126, 127]), ZeroBelow (0 where x < limit, else y), HMax,
// AddUp4 (the lanes of four vectors, in groups of four), Transpose (kLanes vectors), WidenBf16,
// WidenF16, WidenEven and WidenOdd (of bf16 in pairs); kRows x kCols accumulators of a product with
// few rows, kTileRows x kTileVecs of one with many; kScoreRows x kScoreVecs of attention scores;
// kValueRows x kValueVecs of attention output.

#include "worker/native/kernels/attention.h"
#include "worker/native/kernels/many_rows.h"
#include "worker/native/kernels/rows.h"

namespace evald::native {
namespace {

template <WeightType T>
void MultiplyTyped(const MultiplyArgs& a) {
  if (a.rows > Ops::kFewRows) return MultiplyManyRows<T>(a);
  MultiplyFewRows<T>(a);
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
                              .sum_exp = SumExp};

}  // namespace
}  // namespace evald::native
