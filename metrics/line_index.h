#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "base/jsonl.h"
#include "evald/generation.h"
#include "evald/json.h"
#include "evald/score.h"
#include "evald/task_limits.h"

namespace evald {

/// Limits of a line of a run's files: one answer, or the scores of one document. Agents of other
/// hosts write such files too, and a value of two bytes of text takes about 100 bytes when parsed.
inline constexpr JsonLineLimits kRunLineLimits = {.bytes = kScoreBytesMax, .values = 100'000};
/// The metrics of one document under one filter, as text.
inline constexpr uint64_t kNumbersBytesMax = uint64_t{8} << 20;

/// The lines of a JSON Lines file by document. The file is mapped and read once; then only the
/// place of each line is kept, so memory does not grow with the length of the lines. Immutable; any
/// thread may read.
class LineIndex {
 public:
  struct Line {
    uint64_t offset = 0;
    uint32_t bytes = 0;
    uint32_t number = 0;  ///< from 1
  };

  /// Indexes the lines of documents in [first, end). Throws Error(kInput) with file and line if a
  /// line's document is unknown, or the line is too long.
  LineIndex(const std::filesystem::path& path, int64_t first, int64_t end, uint64_t line_bytes_max);

  /// The document's lines in the order of the file; empty if there are none.
  const std::vector<Line>& Lines(int64_t doc_id) const;
  /// The bytes of all lines of a document.
  uint64_t Bytes(int64_t doc_id) const;
  std::vector<int64_t> Documents() const;  ///< in no order
  std::string_view Text(const Line& line) const {
    return file_.view().substr(line.offset, line.bytes);
  }
  /// Throws Error(kInput) with file and line for a line that is not JSON or has too many values.
  Json Parse(const Line& line) const;
  /// "file:17".
  std::string Where(const Line& line) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  MappedFile file_;
  std::unordered_map<int64_t, std::vector<Line>> lines_;
};

/// A generations file.
class GenerationReader {
 public:
  explicit GenerationReader(const std::filesystem::path& path, int64_t first = 0,
                            int64_t end = INT64_MAX)
      : index_(path, first, end, kAnswerBytesMax) {}

  /// All generations of a document in order of (idx, repeat): `requests` times `repeats`. A
  /// generation that is missing or doubled is an Error(kInfrastructure): the file is not the one
  /// that was committed, and a missing answer never counts as wrong. Throws Error(kInput) for a
  /// line that is no generation.
  std::vector<Generation> Read(int64_t doc_id, int requests, int repeats) const;
  /// The same, one generation after another: only one is held. All keys are looked at before the
  /// first call.
  void ForEach(int64_t doc_id, int requests, int repeats,
               const std::function<void(Generation&&)>& visit) const;
  /// The bytes of all lines of a document.
  uint64_t Bytes(int64_t doc_id) const { return index_.Bytes(doc_id); }
  bool Has(int64_t doc_id) const { return !index_.Lines(doc_id).empty(); }

 private:
  LineIndex index_;
};

/// A scores file.
class ScoreReader {
 public:
  explicit ScoreReader(const std::filesystem::path& path, int64_t first = 0,
                       int64_t end = INT64_MAX)
      : index_(path, first, end, kScoreBytesMax) {}

  /// Throws Error(kInfrastructure) if the document is not there.
  ScoredDocument Read(int64_t doc_id) const;
  /// The same without what may be as long as all answers to a document: `filtered` and `detail` are
  /// null. Throws Error(kInput) if what remains takes more than kNumbersBytesMax under a filter.
  ScoredDocument ReadNumbers(int64_t doc_id) const;
  /// The JSON text of `filtered` under a filter, in the file's mapping. Throws Error(kInput) if the
  /// document is not scored under this filter.
  std::string_view Filtered(int64_t doc_id, const std::string& filter) const;
  /// The JSON text of `detail`, in the file's mapping; "" if the line has none.
  std::string_view Detail(int64_t doc_id) const;
  /// The bytes of the document's line.
  uint64_t Bytes(int64_t doc_id) const { return index_.Bytes(doc_id); }
  std::vector<int64_t> Documents() const { return index_.Documents(); }
  bool Has(int64_t doc_id) const { return !index_.Lines(doc_id).empty(); }

 private:
  const LineIndex::Line& LineOf(int64_t doc_id) const;

  LineIndex index_;
};

}  // namespace evald
