#pragma once

#include <cstddef>
#include <cstdint>

// Bounds of a task and of its answers. They bound the memory of the processes that score it, and
// are checked before anything is computed, or at the first line that exceeds them.
namespace evald {

inline constexpr int kRepeatsMax = 10'000;
inline constexpr size_t kPipelinesMax = 64;  ///< entries of filter_list
inline constexpr size_t kStepsMax = 64;      ///< of a pipeline
inline constexpr size_t kMetricsMax = 64;    ///< entries of metric_list
/// Requests of a document, times repeats
inline constexpr int64_t kAnswersPerDocumentMax = 10'000;
/// Requests of all documents, times repeats
inline constexpr int64_t kAnswersPerTaskMax = 20'000'000;

/// One answer, as a line of a generations file.
inline constexpr uint64_t kAnswerBytesMax = uint64_t{16} << 20;
/// All answers to a document, as such lines. Some filters need them together.
inline constexpr uint64_t kDocumentBytesMax = uint64_t{128} << 20;
/// The scores of a document, as a line of a scores file: what the filters leave, and the metrics.
inline constexpr uint64_t kScoreBytesMax = uint64_t{64} << 20;

}  // namespace evald
