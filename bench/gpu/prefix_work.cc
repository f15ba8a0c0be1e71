#include "bench/gpu/prefix_work.h"

#include <algorithm>

namespace evald::bench {

PrefixWork PrefixWorkOf(std::vector<std::vector<int32_t>> sequences) {
  // In this order no sequence shares more with an earlier one than with the one just before it.
  std::sort(sequences.begin(), sequences.end());
  PrefixWork work;
  const std::vector<int32_t> none;
  const std::vector<int32_t>* before = &none;
  for (const std::vector<int32_t>& sequence : sequences) {
    const auto differ =
        std::mismatch(sequence.begin(), sequence.end(), before->begin(), before->end());
    const int64_t shared = differ.first - sequence.begin();
    const auto length = static_cast<int64_t>(sequence.size());
    work.tokens_asked += length;
    work.tokens_distinct += length - shared;
    work.pairs += static_cast<double>(length) * static_cast<double>(length + 1) / 2 -
                  static_cast<double>(shared) * static_cast<double>(shared + 1) / 2;
    before = &sequence;
  }
  return work;
}

}  // namespace evald::bench
