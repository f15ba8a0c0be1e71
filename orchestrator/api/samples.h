#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "evald/json.h"
#include "orchestrator/api/run_files.h"
#include "orchestrator/api/sample_text.h"

namespace evald::api {

/// The place at which each line of a samples file begins and, if a query needs it, each line's
/// mark: its document, its filter, and whether it is right or wrong. Takes 17 bytes a line. The
/// file is read in steps, so that readers of other files have turns between the steps. A step ends
/// early if nobody waits for its result any more. The lines that it found are kept. Any thread.
class SampleIndex {
 public:
  static constexpr size_t kLinesMax = 20'000'000;
  static constexpr uint64_t kStepBytes =
      16 << 20;  ///< bytes that a step reads; more for a longer line

  /// Takes a step towards finding where all lines begin. True if there is nothing left to do.
  /// Throws Error(kInput) for more than kLinesMax lines. Throws Error(kInfrastructure) if reading
  /// fails, and soon after `stopped` has become true.
  bool FindLines(const RunFile& file, const Stopped& stopped);
  /// Takes a step towards the marks of all lines. Call it once FindLines has returned true. Throws
  /// Error(kInput) for a line that is no sample.
  bool MarkLines(const RunFile& file, const Stopped& stopped);

  size_t lines() const { return starts_.size() - 1; }
  /// The line without its newline.
  TextSpan Line(size_t line) const;
  /// Whether the line has `filter` ("" is any) and is right or wrong as `correct` says.
  bool Matches(size_t line, const std::string& filter, std::optional<bool> correct) const;

  /// The file's filters, in its order. Only after MarkLines.
  const std::vector<std::string>& filters() const { return filters_; }
  /// The document of a line; -1 if the line names none. Only after MarkLines.
  int64_t Document(size_t line) const { return documents_[line]; }
  /// 'r' for a right line, 'w' for a wrong one, '-' for one that is neither. Only after MarkLines.
  char Mark(size_t line) const { return "-wr"[marks_[line] % 4]; }

  uint64_t bytes() const { return bytes_; }  ///< of memory

 private:
  void CountBytes() {
    bytes_ = (starts_.capacity() + documents_.capacity()) * sizeof(uint64_t) + marks_.capacity();
  }

  std::mutex mutex_;  // held during a step
  std::atomic<uint64_t> bytes_{0};
  std::atomic<bool> found_{false}, marked_{false};
  bool last_ends_ = true;               // the last line ends with a newline
  uint64_t read_ = 0;                   // bytes of the file
  std::vector<uint64_t> starts_ = {0};  // the begin of each line, and the end of the last
  std::vector<std::string> filters_;
  std::vector<int64_t> documents_;
  std::vector<uint8_t> marks_;  // index into filters_ * 4 + (0 neither, 1 wrong, 2 right)
};

/// The page that a request asks for.
struct SampleQuery {
  std::string filter;  ///< "": any
  std::optional<bool> correct;
  uint64_t cursor = 0;  ///< the line to begin at
  size_t limit = 50;
  bool marks = false;  ///< the marks of lines are asked for, not the lines
};
/// Whether a request needs the marks of all lines.
inline bool NeedsMarks(const SampleQuery& query) {
  return query.marks || !query.filter.empty() || query.correct.has_value();
}
struct SamplePage {
  size_t samples = 0;            ///< added to the text, with "," between them
  std::optional<uint64_t> next;  ///< cursor of the next page
};

/// Pages of samples files. Keeps the indexes of the files asked for last, so that any page of a
/// large file costs as little as the first. Any thread.
class SampleStore {
 public:
  static constexpr size_t kIndexesMax = 32;
  static constexpr uint64_t kIndexBytesMax =
      128 << 20;  ///< of all indexes; the newest index stays in any case
  static constexpr size_t kPageBytesMax = 4 << 20;  ///< a page ends early rather than exceed this
  static constexpr size_t kPagePartsMax =
      20'000;  ///< likewise for the number of parts of the text (PiecedText)

  /// The file's index, if it has all that the query needs. Otherwise takes one step towards that,
  /// and returns nullptr. Throws like SampleIndex.
  std::shared_ptr<const SampleIndex> Index(const RunFile& file, const SampleQuery& query,
                                           const Stopped& stopped = nullptr);

 private:
  std::shared_ptr<SampleIndex> IndexOf(const RunFile& file);

  std::mutex mutex_;
  std::list<std::pair<std::string, std::shared_ptr<SampleIndex>>> indexes_;  // newest first
};

/// Adds the page's samples to `out`. Throws Error(kInput) for a line that is no sample, and soon
/// after `stopped` has become true.
SamplePage AddPage(const SampleIndex& index, const RunFile& file, const SampleQuery& query,
                   const Stopped& stopped, PiecedText* out);

/// Which documents of one filter (the file's first, if the query names none) are right and which
/// are wrong: a Marks resource without `run` and `task`.
Json MarksPage(const SampleIndex& index, const SampleQuery& query);

}  // namespace evald::api
