#pragma once

#include <cstdint>

/// Sizes that the plan of attention and its kernels share.
namespace evald::native::cuda {

/// Rows of queries that one warp computes: one for each row of the batch and head of the group. An
/// item with at most this many is computed by one warp.
inline constexpr int64_t kNarrowRows = 16;
/// Rows of queries that a block of four warps computes; the warps read keys and values together.
inline constexpr int64_t kWideRows = 64;

/// Floats beside head_dim in the partial result of one row, head and chunk. The result holds the
/// sums of values, weighted by 2^(score - top), then top and the sum of the weights.
inline constexpr int64_t kPartialTail = 2;

}  // namespace evald::native::cuda
