#pragma once

#include <cstdint>

#include "worker/native/activation.h"
#include "worker/native/page_positions.h"

/// The inner loops of the native engine, in fp32 (products may take bf16 pairs; see cpu.h). Files
/// compiled for one instruction set include this header, so it includes nothing with inline
/// functions.
///
/// Order of summation: every number depends only on its own inputs and on the inner dimension (or
/// on absolute key positions), and never on the number of rows, columns or threads beside it.
/// Results of different instruction sets may differ in the last bits.
///
/// NaN and infinities pass through. Nothing here checks or throws.
namespace evald::native {

/// The stored type of weights. They are widened to fp32 exactly.
enum class WeightType { kF32, kF16, kBF16 };

/// Keys are kept in blocks of this many positions: [block][dimension][position in block].
inline constexpr int kKeyBlock = 16;

/// y[r][n] = sum over i of x[r][i] * w[n][i] (+ bias[n]) for n in [first, end).
struct MultiplyArgs {
  /// [rows][inner], or the output of Kernels::pack_rows if Kernels::packed_floats is not 0.
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

/// Attention of some rows with one key-value head. If neighbouring rows have the same page at
/// the same index, the page is read once for all of them; it must then hold the positions up to the
/// largest `end` of these rows. All values in the pages must be finite, since the values that a row
/// does not see are multiplied by 0.
struct AttendArgs {
  const AttendRow* rows = nullptr;
  int count = 0;
  int head_dim = 0;
  float scale = 0;
  float cap = 0;             ///< scores become cap * tanh(score / cap); 0: they stay
  int64_t key_offset = 0;    ///< in a page: [kPagePositions / kKeyBlock][head_dim][kKeyBlock]
  int64_t value_offset = 0;  ///< in a page: [kPagePositions][value_stride]
  int64_t value_stride = 0;  ///< head_dim rounded up to kKeyBlock, padded with zeros
  float* scratch = nullptr;  ///< count * ScoreStride(largest end) floats
};

/// Floats per row of attention scores over `keys` keys.
inline int64_t ScoreStride(int64_t keys) {
  return (keys + kPagePositions - 1) / kPagePositions * kPagePositions;
}

/// The functions of one instruction set. Several threads may call them at once.
struct Kernels {
  const char* name;
  int64_t few_rows;       ///< up to this many rows, weights are not laid out anew
  int64_t panel_columns;  ///< columns computed together in a product with more rows
  int64_t (*row_blocks)(int64_t rows);
  /// Floats for laying out x for a product with weights of that type; 0 if x is used in place.
  int64_t (*packed_floats)(int64_t rows, int64_t inner, WeightType type);
  /// Lays out one of the row_blocks(rows) blocks of x [rows][inner], in memory of packed_floats
  /// floats that all blocks share.
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
  /// out = activation(x), times `factor` if that is not null.
  void (*activate)(Activation activation, const float* x, const float* factor, int64_t n,
                   float* out);
  /// x += y
  void (*add)(float* x, const float* y, int64_t n);
  void (*widen)(const void* weights, WeightType type, int64_t n, float* out);
  /// The largest value, and whether all values are finite.
  bool (*maximum)(const float* x, int64_t n, float* maximum);
  /// sum of exp(x - maximum)
  double (*sum_exp)(const float* x, int64_t n, float maximum);
  /// x = cap * tanh(scale * x / cap)
  void (*soft_cap)(float* x, int64_t n, float scale, float cap);
  /// Rounds numbers to the type in which all outputs above are; null if they are fp32.
  void (*round)(float* x, int64_t n) = nullptr;
};

const Kernels& PortableKernels();
/// Null if the compiler's target has no such instruction set.
const Kernels* Avx2Kernels();
const Kernels* Avx512Kernels();
/// The AVX-512 kernels with products of bf16 weights by the bf16 dot instruction: x is rounded to
/// bf16, sums are in fp32.
const Kernels* Avx512Bf16Kernels();

}  // namespace evald::native
