#pragma once

#include <cstdint>

/// What the plan of attention and its kernels agree on.
namespace evald::native::cuda {

/// Rows of queries, one for each row of the batch and head of the group, that a warp computes;
/// items of not more are a single warp's.
inline constexpr int64_t kNarrowRows = 16;
/// Those that a block of four warps computes, which read keys and values together.
inline constexpr int64_t kWideRows = 64;

/// Of the partial result of one row, head and chunk: the sums of values, weighted by 2^(score -
/// top), then top and the sum of the weights. So many floats more than head_dim.
inline constexpr int64_t kPartialTail = 2;

}  // namespace evald::native::cuda
