#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evald/json.h"
#include "orchestrator/api/run_files.h"

namespace evald::api {

/// The parts of a line of samples_<task>.jsonl by which samples are filtered.
struct SampleMark {
  std::string filter;
  std::optional<bool> correct;  ///< the first metric is 1 or 0; nothing for a value between
};

/// Scans one line without building a document. Throws Error(kInput) if it is no sample.
SampleMark MarkOf(std::string_view line);

/// The Sample resource of one line: doc_id, filter, prompt, answers, target, scores, ...
/// Throws Error(kInput).
Json SampleResource(std::string_view line);

/// The begin of each line of a samples file and, after Mark(), each line's mark. 9 bytes a line.
class SampleIndex {
 public:
  static constexpr size_t kLinesMax = 20'000'000;

  /// Reads the file once. Throws Error(kInfrastructure).
  explicit SampleIndex(const RunFile& file);
  /// Reads the file once more, for filters. Several threads may call it at once.
  void Mark(const RunFile& file);

  size_t lines() const { return starts_.size() - 1; }
  /// The line without its newline.
  std::string Line(const RunFile& file, size_t line) const;
  /// Whether the line has `filter` ("" is any) and is right or wrong as `correct` says. Call Mark()
  /// before.
  bool Matches(size_t line, const std::string& filter, std::optional<bool> correct) const;

 private:
  std::vector<uint64_t> starts_;  // the begin of each line, and the end of the last
  std::once_flag marked_;
  std::vector<std::string> filters_;
  std::vector<uint8_t> marks_;  // index into filters_ * 4 + (0 neither, 1 wrong, 2 right)
};

/// The page that a request asks for.
struct SampleQuery {
  std::string filter;  ///< "": any
  std::optional<bool> correct;
  uint64_t cursor = 0;  ///< the line to begin at
  size_t limit = 50;
};
struct SamplePage {
  Json samples = Json::array();
  uint64_t lines = 0;            ///< of the whole file
  std::optional<uint64_t> next;  ///< cursor of the next page
};

/// Pages of samples files. Keeps the indexes of the files asked for last, so that any page of a
/// large file costs as little as the first. Any thread.
class SampleStore {
 public:
  static constexpr size_t kIndexesMax = 32;
  static constexpr size_t kPageBytesMax = 4 << 20;  ///< a page ends early rather than exceed this

  SamplePage Read(const RunFile& file, const SampleQuery& query);

 private:
  std::shared_ptr<SampleIndex> IndexOf(const RunFile& file);

  std::mutex mutex_;
  std::list<std::pair<std::string, std::shared_ptr<SampleIndex>>> indexes_;  // newest first
};

}  // namespace evald::api
