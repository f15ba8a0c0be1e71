#pragma once

#include <cstdint>
#include <vector>

namespace evald::bench {

/// What computing these sequences takes when every prefix that some of them share is computed once.
struct PrefixWork {
  int64_t tokens_asked = 0;     ///< of all sequences
  int64_t tokens_distinct = 0;  ///< prefixes that differ: what must be computed at least
  double pairs = 0;             ///< positions that those see, each its own included
};
PrefixWork PrefixWorkOf(std::vector<std::vector<int32_t>> sequences);

}  // namespace evald::bench
