#include "datasets/documents.h"

#include <fmt/format.h>
#include <zlib.h>

#include <set>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kUnpackedBytesMax = 4ull << 30;

[[noreturn]] void Fail(const std::string& where, const std::string& message,
                       const std::string& remedy = "") {
  throw Error(ErrorKind::kInput, where + ": " + message, remedy);
}

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

std::string Unpack(const std::string& packed, const std::string& name) {
  if (packed.size() > UINT32_MAX) Fail(name, "the gzip file has more than 4 GiB");
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 32) != Z_OK) {
    throw Error(ErrorKind::kInfrastructure, "zlib does not start");
  }
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string out;
  std::string buffer(1 << 18, '\0');
  int status = Z_OK;
  while (status == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    status = inflate(&stream, Z_NO_FLUSH);
    out.append(buffer, 0, buffer.size() - stream.avail_out);
    if (out.size() > kUnpackedBytesMax) break;
    // A gzip file may hold several members one after the other.
    if (status == Z_STREAM_END && stream.avail_in > 0 && inflateReset(&stream) == Z_OK) {
      status = Z_OK;
    }
    if (status == Z_BUF_ERROR) break;
  }
  inflateEnd(&stream);
  if (out.size() > kUnpackedBytesMax) Fail(name, "the file unpacks to more than 4 GiB");
  if (status != Z_STREAM_END) Fail(name, "the gzip data is broken or cut short");
  return out;
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

void ReadLines(std::string_view text, RowSink* sink) {
  size_t line = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    ++line;
    const std::string_view content = text.substr(at, end - at);
    if (!Trim(content).empty()) {
      sink->Add(ParseJson(content, fmt::format("{}:{}", sink->name(), line)), line);
    }
    at = end + 1;
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

void ReadJson(std::string_view text, RowSink* sink) {
  if (Trim(text).substr(0, 1) != "[") {
    ReadLines(text, sink);
    return;
  }
  Json array = ParseJson(text, sink->name());
  const std::vector<size_t> lines = ElementLines(text);
  for (size_t i = 0; i < array.size(); ++i) {
    sink->Add(std::move(array[i]), i < lines.size() ? lines[i] : 1);
  }
}

}  // namespace

std::string ReadMaybeGzip(const fs::path& path) {
  std::string bytes = ReadFile(path);
  return EndsWith(path.string(), ".gz") ? Unpack(bytes, path.string()) : bytes;
}

void ReadDocuments(const fs::path& path, const std::optional<RowRange>& range,
                   const std::atomic<bool>* cancel, Documents* out) {
  std::string name = path.string();
  if (EndsWith(name, ".gz")) name.resize(name.size() - 3);
  std::string text = ReadMaybeGzip(path);
  if (text.rfind("\xef\xbb\xbf", 0) == 0) text.erase(0, 3);
  RowSink sink(path, range, cancel, out);
  if (EndsWith(name, ".jsonl")) {
    ReadLines(text, &sink);
  } else if (EndsWith(name, ".json")) {
    ReadJson(text, &sink);
  } else if (EndsWith(name, ".csv")) {
    std::vector<size_t> lines;
    std::vector<Json> rows = ParseCsv(text, path.string(), &lines);
    for (size_t i = 0; i < rows.size(); ++i) sink.Add(std::move(rows[i]), lines[i]);
  } else {
    Fail(path.string(), "the ending of the file is not known",
         "use .jsonl, .json or .csv, or one of these with .gz");
  }
  if (sink.rows() == 0) Fail(path.string(), "the file has no documents");
}

}  // namespace evald
