#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "evald/generation.h"
#include "evald/json.h"
#include "evald/score.h"

namespace evald {

/// The lines of a JSON Lines file by document: the file is mapped and read once, then only where
/// each line lies is kept, so that memory does not grow with the length of the lines. Immutable;
/// any thread may read.
class LineIndex {
 public:
  struct Line {
    uint64_t offset = 0;
    uint32_t bytes = 0;
    uint32_t number = 0;  ///< from 1
  };

  /// Indexes the lines whose document is in [first, end). Throws Error(kInput) naming file and line
  /// for one whose document cannot be told.
  LineIndex(const std::filesystem::path& path, int64_t first, int64_t end);

  /// In the order of the file; empty when there is none.
  const std::vector<Line>& Lines(int64_t doc_id) const;
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
      : index_(path, first, end) {}

  /// All generations of a document in order of (idx, repeat): `requests` times `repeats`. One that
  /// is not in the file, or twice, is Error(kInfrastructure): the file is not what was committed,
  /// and no answer is ever taken for a wrong one. Throws Error(kInput) for a line that is no
  /// generation.
  std::vector<Generation> Read(int64_t doc_id, int requests, int repeats) const;
  bool Has(int64_t doc_id) const { return !index_.Lines(doc_id).empty(); }

 private:
  LineIndex index_;
};

/// A scores file.
class ScoreReader {
 public:
  explicit ScoreReader(const std::filesystem::path& path, int64_t first = 0,
                       int64_t end = INT64_MAX)
      : index_(path, first, end) {}

  /// Throws Error(kInfrastructure) when the document is not there.
  ScoredDocument Read(int64_t doc_id) const;
  bool Has(int64_t doc_id) const { return !index_.Lines(doc_id).empty(); }

 private:
  LineIndex index_;
};

}  // namespace evald
