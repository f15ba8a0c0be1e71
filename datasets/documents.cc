#include "datasets/documents.h"

#include <fmt/format.h>

#include <set>

#include "base/jsonl.h"
#include "base/read_roots.h"
#include "base/text.h"
#include "datasets/line_reader.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void Fail(const std::string& where, const std::string& message,
                       const std::string& remedy = "") {
  throw Error(ErrorKind::kInput, where + ": " + message, remedy);
}

// Adds a row, unless the range leaves it out.
class RowSink {
 public:
  RowSink(const fs::path& path, const std::optional<RowRange>& range,
          const std::atomic<bool>* cancel, Documents* out)
      : name_(path.string()), range_(range), cancel_(cancel), out_(out) {
    seen_.insert(out->columns.begin(), out->columns.end());
  }

  void Add(Json&& row, size_t line) {
    if (cancel_ != nullptr && cancel_->load()) {
      throw Error(ErrorKind::kInfrastructure, "reading the documents was cancelled");
    }
    const std::string where = fmt::format("{}:{}", name_, line);
    if (!row.is_object()) Fail(where, "a document is a JSON object");
    ++rows_;
    if (range_) {
      const int64_t value = Field<int64_t>(row, range_->field, where);
      if (value < range_->from || value > range_->to) return;
    }
    for (const auto& item : row.items()) {
      if (seen_.insert(item.key()).second) out_->columns.push_back(item.key());
    }
    out_->rows.push_back(std::move(row));
    out_->where.push_back(where);
  }

  size_t rows() const { return rows_; }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  const std::optional<RowRange>& range_;
  const std::atomic<bool>* cancel_;
  Documents* out_;
  std::set<std::string> seen_;
  size_t rows_ = 0;
};

void ReadLines(LineReader* lines, RowSink* sink) {
  std::string_view content;
  while (lines->NextLine(&content)) {
    if (Trim(content).empty()) continue;
    sink->Add(ParseJson(content, fmt::format("{}:{}", sink->name(), lines->line())), lines->line());
  }
}

// The line of each element of a top-level array, counted over its text.
std::vector<size_t> ElementLines(std::string_view text) {
  std::vector<size_t> lines;
  size_t line = 1;
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (depth++ == 1) lines.push_back(line);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return lines;
}

void ReadArray(std::string_view text, RowSink* sink) {
  Json array = ParseJson(text, sink->name());
  const std::vector<size_t> lines = ElementLines(text);
  for (size_t i = 0; i < array.size(); ++i) {
    sink->Add(std::move(array[i]), i < lines.size() ? lines[i] : 1);
  }
}

void ReadJson(LineReader* lines, RowSink* sink) {
  if (lines->FirstCharacter() != '[') return ReadLines(lines, sink);
  ReadArray(lines->Rest(), sink);
}

}  // namespace

void ReadDocuments(const UniqueFd& fd, const fs::path& path, const DataLimits& limits,
                   const std::optional<RowRange>& range, const std::atomic<bool>* cancel, Documents* out) {
  std::string name = path.string();
  const bool packed = name.ends_with(".gz");
  if (packed) name.resize(name.size() - 3);
  LineReader lines(fd, path.string(), packed, {limits.line_bytes, limits.whole_bytes}, cancel);
  RowSink sink(path, range, cancel, out);
  if (name.ends_with(".jsonl")) {
    ReadLines(&lines, &sink);
  } else if (name.ends_with(".json")) {
    ReadJson(&lines, &sink);
  } else if (name.ends_with(".csv")) {
    std::vector<size_t> numbers;
    std::vector<Json> rows = ParseCsv(lines.Rest(), path.string(), &numbers);
    for (size_t i = 0; i < rows.size(); ++i) sink.Add(std::move(rows[i]), numbers[i]);
  } else {
    Fail(path.string(), "the ending of the file is not known",
         "use .jsonl, .json or .csv, or one of these with .gz");
  }
  if (sink.rows() == 0) Fail(path.string(), "the file has no documents");
}

void ReadDocuments(const fs::path& path, const std::optional<RowRange>& range, const std::atomic<bool>* cancel,
                   Documents* out) {
  ReadDocuments(ReadRoots().OpenFile(path), path, {}, range, cancel, out);
}

}  // namespace evald
