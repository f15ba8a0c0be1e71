#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "orchestrator/schedule/open_work.h"

namespace evald {

/// A slice is what scoring waits for: so many documents at most. Of tasks that are slow to score
/// fewer, so that the metric pool has something to do from the first ones on.
inline constexpr int64_t kSliceDocumentsMax = 256;
inline constexpr int64_t kSlowSliceDocumentsMax = 16;
inline int64_t SliceDocumentsMax(bool slow_scoring) {
  return slow_scoring ? kSlowSliceDocumentsMax : kSliceDocumentsMax;
}

/// A metric job of a task that is slow to score; of others a job is a slice.
inline constexpr int64_t kSlowJobDocuments = 4;
/// Of a task's documents, after which its estimate is corrected: a policy's order is made anew
/// then.
inline constexpr double kLearnShare = 0.02;

/// A request that is under way for longer than any was expected to take, by this factor, is worth
/// telling.
inline constexpr double kOverdueGrowth = 1.1;

/// Cuts a range into slices.
inline std::vector<DocumentRange> CutSlices(DocumentRange range, bool slow_scoring) {
  const int64_t most = SliceDocumentsMax(slow_scoring);
  std::vector<DocumentRange> slices;
  for (; range.size() > 0; range.first = std::min(range.first + most, range.end)) {
    slices.push_back({range.first, std::min(range.first + most, range.end)});
  }
  return slices;
}

}  // namespace evald
