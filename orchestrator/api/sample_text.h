#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_walk.h"
#include "http_server/message.h"
#include "orchestrator/api/run_files.h"

namespace evald::api {

/// True when work may end early. Throws nothing. Any thread.
using Stopped = std::function<bool()>;

/// A samples file as a text, which throws Error(kInfrastructure) soon after `stopped` (may be null)
/// has become true. `file` outlives the text.
TextInFile TextOf(const RunFile& file, const Stopped& stopped);

/// Text made of short texts and of parts of a file, which are read when they are sent. Takes 16
/// bytes for each part, however long it is.
class PiecedText : public http::PieceSource {
 public:
  explicit PiecedText(std::shared_ptr<const RunFile> file) : file_(std::move(file)) {}

  void Add(std::string_view text);
  void Add(TextSpan part_of_file);
  size_t parts() const { return parts_.size(); }

  uint64_t bytes() const override { return bytes_; }
  std::string Next(size_t most) override;

 private:
  struct Part {
    uint64_t begin;  // in texts_ or in the file
    uint64_t bytes : 63;
    uint64_t in_file : 1;
  };

  std::shared_ptr<const RunFile> file_;
  std::string texts_;
  std::vector<Part> parts_;
  uint64_t bytes_ = 0;
  size_t part_ = 0;      // the next one to send
  uint64_t offset_ = 0;  // in that part
};

/// The parts of a line of samples_<task>.jsonl by which samples are filtered.
struct SampleMark {
  std::optional<int64_t> doc_id;
  std::string filter;
  std::optional<bool> correct;  ///< the first metric is 1 or 0; nothing for a value between
};

/// Reads one line without holding its long values. Throws Error(kInput) if it is no sample.
SampleMark MarkOf(LongText* text, TextSpan line);

/// Adds the Sample resource of one line: doc_id, filter, prompt, answers, target, scores, ...
/// Throws Error(kInput).
void AddSample(LongText* text, TextSpan line, PiecedText* out);

}  // namespace evald::api
