#pragma once

#include <cstdint>
#include <vector>

namespace evald::bench {

/// The work for sequences if every prefix that some of them share is computed once.
struct PrefixWork {
  int64_t tokens_asked = 0;     ///< of all sequences
  int64_t tokens_distinct = 0;  ///< different prefixes: the least number of tokens to compute
  double pairs = 0;             ///< positions to which these tokens attend, their own included
};
PrefixWork PrefixWorkOf(std::vector<std::vector<int32_t>> sequences);

}  // namespace evald::bench
