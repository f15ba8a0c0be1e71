#pragma once

#include <cstdint>

namespace evald {

/// The most documents in a slice, the unit that scoring waits for. Tasks that are slow to score
/// have smaller slices, so that the metric pool has work early.
inline constexpr int64_t kSliceDocumentsMax = 256;
inline constexpr int64_t kSlowSliceDocumentsMax = 16;
inline int64_t SliceDocumentsMax(bool slow_scoring) {
  return slow_scoring ? kSlowSliceDocumentsMax : kSliceDocumentsMax;
}

/// Documents in a metric job of a task that is slow to score. For other tasks a job is a slice.
inline constexpr int64_t kSlowJobDocuments = 4;
/// An estimate is corrected after this share of a task's documents. A policy's order is then made
/// anew.
inline constexpr double kLearnShare = 0.02;

/// A request that exceeds the expected longest one by this factor changes the estimate.
inline constexpr double kOverdueGrowth = 1.1;

}  // namespace evald
