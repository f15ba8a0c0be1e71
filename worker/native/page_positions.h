#pragma once

namespace evald::native {

/// Positions in one page of keys and values; a multiple of every kernel's stride of keys.
inline constexpr int kPagePositions = 64;

}  // namespace evald::native
