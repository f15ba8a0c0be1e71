#pragma once

#include <cstdint>

#include "worker/native/activation.h"
#include "worker/native/page_positions.h"

/// The inner loops of the native engine, in fp32 (products may take bf16 pairs; see cpu.h).
/// Included by files that are compiled for one instruction set only, so it includes nothing that
/// has inline functions.
///
/// Order of summation: every number that these functions give depends on its own inputs and on the
/// inner dimension (or on absolute key positions) alone, never on how many rows, columns or threads
/// are computed beside it. Results of different instruction sets may differ in the last bits.
///
/// NaN and infinities pass through; nothing here checks or throws.
namespace evald::native {

/// How weights are stored. They are widened to fp32 exactly.
enum class WeightType { kF32, kF16, kBF16 };

/// Keys are kept in blocks of this many positions: [block][dimension][position in block].
inline constexpr int kKeyBlock = 16;

/// y[r][n] = sum over i of x[r][i] * w[n][i] (+ bias[n]) for n in [first, end).
struct MultiplyArgs {
  /// [rows][inner]; where Kernels::packed_floats is not 0, what Kernels::pack_rows made of it.
  const float* x = nullptr;
  int64_t rows = 0;
  int64_t inner = 0;
  const void* weights = nullptr;  ///< [out][inner], any alignment
  WeightType type = WeightType::kF32;
  int64_t first = 0;
  int64_t end = 0;
  const float* bias = nullptr;  ///< [out], or null
  float* y = nullptr;           ///< [rows][y_stride]
  int64_t y_stride = 0;
  float* scratch = nullptr;  ///< Kernels::multiply_scratch_floats floats of the calling thread
};

/// One query and the keys that it sees: positions [first, end) of its sequence.
struct AttendRow {
  const float* q = nullptr;             ///< [head_dim]
  float* out = nullptr;                 ///< [head_dim]
  const float* const* pages = nullptr;  ///< of the sequence, by position / kPagePositions
  int64_t first = 0;
  int64_t end = 0;
};

/// Attention of some rows with one key-value head. Rows side by side that have the same page at the
/// same place read it once; the positions up to the largest of their ends must be in it.
struct AttendArgs {
  const AttendRow* rows = nullptr;
  int count = 0;
  int head_dim = 0;
  float scale = 0;
  int64_t key_offset = 0;    ///< in a page: [kPagePositions / kKeyBlock][head_dim][kKeyBlock]
  int64_t value_offset = 0;  ///< in a page: [kPagePositions][value_stride]
  int64_t value_stride = 0;  ///< head_dim rounded up to kKeyBlock, padded with zeros
  float* scratch = nullptr;  ///< count * ScoreStride(largest end) floats
};

/// Floats per row of attention scores over `keys` keys.
inline int64_t ScoreStride(int64_t keys) {
  return (keys + kPagePositions - 1) / kPagePositions * kPagePositions;
}

/// One instruction set's functions. All are reentrant.
struct Kernels {
  const char* name;
  int64_t few_rows;       ///< up to so many rows, weights are read as they lie
  int64_t panel_columns;  ///< of a product with more rows, computed together
  int64_t (*row_blocks)(int64_t rows);
  /// What x needs to be laid out anew for a product with weights of that type; 0 where it is
  /// multiplied as it lies.
  int64_t (*packed_floats)(int64_t rows, int64_t inner, WeightType type);
  /// Lays out one of the row_blocks(rows) blocks of x [rows][inner], in memory of packed_floats
  /// that all blocks share.
  void (*pack_rows)(const float* x, int64_t rows, int64_t inner, WeightType type, int64_t row_block,
                    float* packed);
  int64_t (*multiply_scratch_floats)(int64_t rows);
  void (*multiply)(const MultiplyArgs& args);
  void (*attend)(const AttendArgs& args);
  /// out = x / sqrt(mean(x^2) + eps) * weight
  void (*rms_norm)(const float* x, const float* weight, float eps, int64_t n, float* out);
  /// out = (x - mean(x)) / sqrt(variance(x) + eps) * weight + bias
  void (*layer_norm)(const float* x, const float* weight, const float* bias, float eps, int64_t n,
                     float* out);
  /// out = activation(x), times `factor` where that is not null.
  void (*activate)(Activation activation, const float* x, const float* factor, int64_t n,
                   float* out);
  /// x += y
  void (*add)(float* x, const float* y, int64_t n);
  void (*widen)(const void* weights, WeightType type, int64_t n, float* out);
  /// The largest value, and whether all values are finite.
  bool (*maximum)(const float* x, int64_t n, float* maximum);
  /// sum of exp(x - maximum)
  double (*sum_exp)(const float* x, int64_t n, float maximum);
};

const Kernels& PortableKernels();
/// Null where the compiler's target has no such instruction set.
const Kernels* Avx2Kernels();
const Kernels* Avx512Kernels();
/// Those of AVX-512 with products of bf16 weights by the bf16 dot instruction: x is rounded to
/// bf16, sums are in fp32.
const Kernels* Avx512Bf16Kernels();

}  // namespace evald::native
