#include "datasets/documents.h"

#include <fmt/format.h>

#include "base/jsonl.h"
#include "base/read_roots.h"
#include "base/text.h"
#include "datasets/line_reader.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr size_t kBatchBytes = 10 << 20;          // JsonConfig.chunksize of `datasets`
constexpr size_t kBlockBytes = kBatchBytes / 32;  // within it, objects need no line of their own
constexpr size_t kChunkRows = 10'000;             // CsvConfig.chunksize

[[noreturn]] void Fail(const std::string& where, const std::string& message,
                       const std::string& remedy = "") {
  throw Error(ErrorKind::kInput, where + ": " + message, remedy);
}

// The form of a batch's JSON text, on which the treatment by `datasets` depends.
struct BatchText {
  bool lines = true;   // each line is one object
  bool array = false;  // the file is one array
  uint64_t bytes = 0;
};

size_t CountKeys(const Json& value) {
  size_t count = value.is_object() ? value.size() : 0;
  if (value.is_structured()) {
    for (const Json& item : value) count += CountKeys(item);
  }
  return count;
}

size_t CountColons(std::string_view text) {
  size_t count = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') in_string = !in_string;
    if (in_string && text[i] == '\\') ++i;
    if (!in_string && text[i] == ':') ++count;
  }
  return count;
}

Json ParseRow(std::string_view text, const std::string& where) {
  Json row = ParseJson(text, where);
  if (CountKeys(row) != CountColons(text)) Fail(where, "a key is written twice in an object");
  return row;
}

// Collects the rows of a batch, and appends them with the types of the dataset.
class RowSink {
 public:
  RowSink(const fs::path& path, const ReadRules& rules, const std::optional<RowRange>& range,
          size_t rows_max, const std::atomic<bool>* cancel, DatasetColumns* columns, Documents* out)
      : name_(path.string()),
        rules_(rules),
        range_(range),
        rows_max_(rows_max),
        cancel_(cancel),
        columns_(columns),
        out_(out) {
    ++columns->files;
  }

  void Add(Json&& row, size_t line) {
    CheckCancelled();
    if (!row.is_object()) Fail(Where(line), "a document is a JSON object");
    ++rows_;
    batch_.push_back(std::move(row));
    lines_.push_back(line);
  }

  // Ends a batch of JSON rows.
  void EndBatch(const BatchText& text) {
    if (batch_.empty()) return;
    const bool first = !columns_->type.has_value();
    const TypingRules typing{rules_.as_loader, rules_.as_loader && first && text.lines};
    ColumnType type;
    for (const Json& row : batch_) WidenForRow(row, typing, &type);
    if (type.names.empty()) Fail(Where(lines_.front()), "the rows from here on have no columns");
    if (rules_.as_loader && first && text.array) columns_->files_alike = true;
    if (rules_.as_loader) CheckNullsInLists(type, text);
    Decide(type);
    const bool encoded = rules_.as_loader && HoldsAny(*columns_->type);
    if (encoded && !text.lines) {
      Fail(Where(lines_.front()),
           "a column holds values of several types, and not each line holds one row",
           "give the column one type, or write each row on one line, without empty lines");
    }
    Append(type, {rules_.as_loader, rules_.as_loader && (encoded || text.array)});
  }

  void Add(CsvChunk&& chunk) {
    rows_ += chunk.rows.size();
    batch_ = std::move(chunk.rows);
    lines_ = std::move(chunk.lines);
    columns_->files_alike = rules_.as_loader;
    Decide(chunk.type);
    Append(chunk.type, {rules_.as_loader, false});
  }

  bool as_loader() const { return rules_.as_loader; }
  bool only_columns() const { return out_ == nullptr; }
  bool full() const { return rows_max_ > 0 && rows_ >= rows_max_; }
  size_t rows() const { return rows_; }
  const std::string& name() const { return name_; }
  std::string Where(size_t line) const { return fmt::format("{}:{}", name_, line); }

 private:
  void CheckCancelled() const {
    if (cancel_ != nullptr && cancel_->load()) {
      throw Error(ErrorKind::kInfrastructure, "reading the documents was cancelled");
    }
  }

  // Arrow drops nulls before the first item of a list whose type it knows, in each block anew.
  // `datasets` then reads the rows in another way, which is not implemented here.
  void CheckNullsInLists(const ColumnType& type, const BatchText& text) const {
    const std::string column =
        text.bytes > kBlockBytes
            ? FindList(type, [](const ColumnType& list) { return list.holds_nulls; })
            : FindList(type, [](const ColumnType& list) {
                const bool any = list.parts[0].kind == ColumnType::Kind::kAny;
                return list.begins_in_null || (any && list.holds_nulls);
              });
    if (column.empty()) return;
    Fail(name_, fmt::format("the lists of the column '{}' hold null", column),
         "leave out what is null in lists");
  }

  void Decide(const ColumnType& type) {
    if (!columns_->type) columns_->type = type;
    if (!columns_->split_type) columns_->split_type = type;
    constexpr const char* kRemedy =
        "give each column one type in all rows and files of the dataset";
    if (columns_->files_alike && columns_->files > 1 && !IsAlike(type, *columns_->split_type)) {
      Fail(name_, "the columns or their types are not those of the split's first file", kRemedy);
    }
    const std::string why = WhyNotCast(type, *columns_->type);
    if (!why.empty()) Fail(Where(lines_.front()), "among the rows from here on: " + why, kRemedy);
  }

  void Append(const ColumnType& type, const CastRules& cast) {
    for (size_t i = 0; i < batch_.size() && out_ != nullptr; ++i) {
      CheckCancelled();
      const std::string where = Where(lines_[i]);
      if (range_) {
        const auto value = Field<int64_t>(batch_[i], range_->field, where);
        if (value < range_->from || value > range_->to) continue;
      }
      try {
        out_->rows.push_back(Cast(std::move(batch_[i]), type, *columns_->type, cast));
      } catch (Error& error) {
        error.AddContext(where);
        throw;
      }
      out_->where.push_back(where);
    }
    if (out_ != nullptr) out_->columns = columns_->type->names;
    batch_.clear();
    lines_.clear();
  }

  std::string name_;
  const ReadRules& rules_;
  const std::optional<RowRange>& range_;
  size_t rows_max_;  ///< 0: no limit
  const std::atomic<bool>* cancel_;
  DatasetColumns* columns_;
  Documents* out_;  // null if only the columns are wanted
  std::vector<Json> batch_;
  std::vector<size_t> lines_;
  size_t rows_ = 0;
};

void ReadLines(LineReader* lines, RowSink* sink) {
  std::string_view content;
  BatchText text;
  uint64_t offset = 0;
  uint64_t batch_begin = 0;
  while (lines->NextLine(&content)) {
    if (sink->as_loader() && offset - batch_begin > kBatchBytes) {
      sink->EndBatch(text);
      if (sink->only_columns()) return;
      text = {};
      batch_begin = offset;
    }
    offset += content.size() + 1;
    text.bytes = offset - batch_begin;
    const std::string_view row = Trim(content);
    text.lines = text.lines && !row.empty() && row.find('\r') == std::string_view::npos;
    if (!row.empty()) sink->Add(ParseRow(row, sink->Where(lines->line())), lines->line());
    if (sink->full()) break;
  }
  sink->EndBatch(text);
}

// The begin, end and line of a value between bracket levels `depth` and `depth` + 1.
struct Piece {
  size_t begin = 0;
  size_t end = 0;
  size_t line = 1;
};

std::vector<Piece> PiecesAt(std::string_view text, int level) {
  std::vector<Piece> pieces;
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
      if (depth++ == level) pieces.push_back({i, text.size(), line});
    } else if (c == '}' || c == ']') {
      if (--depth == level && !pieces.empty()) pieces.back().end = i + 1;
    }
  }
  return pieces;
}

void ReadArray(std::string_view text, RowSink* sink) {
  if (sink->as_loader()) {
    if (text[0] != '[') {
      Fail(sink->name(), "white space stands before the array", "let the file begin with '['");
    }
    const std::string_view head = text.substr(0, std::min<size_t>(text.find('"'), 100));
    if (head.find('{') == std::string_view::npos) {
      Fail(sink->name() + ":1",
           "a document is a JSON object, and the first 100 bytes of the array begin none");
    }
  }
  Json array = ParseRow(text, sink->name());
  const std::vector<Piece> pieces = PiecesAt(text, 1);
  for (size_t i = 0; i < array.size(); ++i) {
    sink->Add(std::move(array[i]), i < pieces.size() ? pieces[i].line : 1);
  }
  BatchText form;
  form.array = true;
  form.bytes = text.size();
  sink->EndBatch(form);
}

// Reads a sequence of objects, on any lines. False if the text is something else.
bool ReadObjects(std::string_view text, RowSink* sink) {
  const std::vector<Piece> pieces = PiecesAt(text, 0);
  std::vector<Json> rows;
  size_t end = 0;
  for (const Piece& piece : pieces) {
    if (!Trim(text.substr(end, piece.begin - end)).empty()) return false;
    end = piece.end;
    try {
      rows.push_back(ParseRow(text.substr(piece.begin, piece.end - piece.begin), ""));
    } catch (const Error&) {
      return false;
    }
    if (!rows.back().is_object()) return false;
  }
  if (!Trim(text.substr(end)).empty()) return false;
  for (size_t i = 0; i < rows.size(); ++i) sink->Add(std::move(rows[i]), pieces[i].line);
  BatchText form;
  form.lines = false;
  sink->EndBatch(form);
  return true;
}

// Whether two objects share a line, or one spans several.
bool BreaksLines(const std::string_view text) {
  size_t line = 0;
  for (const Piece& piece : PiecesAt(text, 0)) {
    if (piece.line == line ||
        text.substr(piece.begin, piece.end - piece.begin).find('\n') != std::string_view::npos) {
      return true;
    }
    line = piece.line;
  }
  return false;
}

void ReadJson(LineReader* lines, RowSink* sink) {
  if (lines->FirstCharacter() == '[') return ReadArray(lines->Rest(), sink);
  const auto whole = lines->WholeIfSmall(kBlockBytes);
  if (whole && BreaksLines(*whole) && ReadObjects(*whole, sink)) return;
  ReadLines(lines, sink);
}

void ReadCsv(LineReader* lines, const CsvForm& form, RowSink* sink) {
  const size_t rows_max = sink->as_loader() ? kChunkRows : SIZE_MAX;
  for (CsvChunk& chunk : ParseCsv(lines->Rest(), sink->name(), rows_max, form)) {
    sink->Add(std::move(chunk));
    if (sink->only_columns()) return;
  }
}

// Lines as Python's text files have them: "\r\n" and "\r" end a line as "\n" does.
void ReadText(LineReader* lines, RowSink* sink) {
  const std::string_view text = lines->Rest();
  const std::string mark = lines->began_with_mark() ? "\xEF\xBB\xBF" : "";
  if (!IsUtf8(text)) Fail(sink->name(), "the text is not UTF-8");
  size_t line = 0;
  for (size_t begin = 0; begin < text.size() || (line == 0 && !mark.empty());) {
    const size_t end = std::min(text.find_first_of("\r\n", begin), text.size());
    Json row = Json::object();
    row["text"] = (line == 0 ? mark : "") + std::string(text.substr(begin, end - begin));
    sink->Add(std::move(row), ++line);
    begin = end + (text.substr(end, 2) == "\r\n" ? 2 : 1);
  }
  sink->EndBatch({});
}

DataFormat FormatOf(const std::string& name, const ReadRules& rules) {
  if (rules.format != DataFormat::kByEnding) return rules.format;
  if (rules.as_loader && name.ends_with(".ndjson")) return DataFormat::kJson;
  if (rules.as_loader && name.ends_with(".txt")) return DataFormat::kText;
  if (name.ends_with(".jsonl") || name.ends_with(".json")) return DataFormat::kJson;
  if (name.ends_with(".csv")) return DataFormat::kCsv;
  Fail(name, "the ending of the file is not known",
       "use .jsonl, .json or .csv, or one of these with .gz");
}

std::string Read(const UniqueFd& fd, const fs::path& path, const DataLimits& limits,
                 const ReadRules& rules, const std::optional<RowRange>& range,
                 const std::atomic<bool>* cancel, DatasetColumns* columns, Documents* out) {
  std::string name = path.string();
  const bool packed = name.ends_with(".gz");
  if (packed) name.resize(name.size() - 3);
  const DataFormat format = FormatOf(name, rules);
  ReadRules typing = rules;
  if (format == DataFormat::kText) typing.as_loader = false;  // no line is a date
  LineReader lines(fd, path.string(), packed, {limits.line_bytes, limits.whole_bytes}, cancel);
  RowSink sink(path, typing, range, limits.rows, cancel, columns, out);
  if (format == DataFormat::kJson) {
    ReadJson(&lines, &sink);
  } else if (format == DataFormat::kText) {
    ReadText(&lines, &sink);
  } else {
    ReadCsv(&lines, rules.csv, &sink);
  }
  if (sink.rows() == 0) Fail(path.string(), "the file has no documents");
  return limits.rows > 0 ? "" : lines.FileHash();
}

}  // namespace

std::string ReadDocuments(const UniqueFd& fd, const fs::path& path, const DataLimits& limits,
                          const ReadRules& rules, const std::optional<RowRange>& range,
                          const std::atomic<bool>* cancel, DatasetColumns* columns,
                          Documents* out) {
  return Read(fd, path, limits, rules, range, cancel, columns, out);
}

std::string ReadDocuments(const fs::path& path, const std::optional<RowRange>& range,
                          const std::atomic<bool>* cancel, Documents* out) {
  DatasetColumns columns;
  return Read(ReadRoots().OpenFile(path), path, {}, {}, range, cancel, &columns, out);
}

std::string ReadColumns(const UniqueFd& fd, const fs::path& path, const DataLimits& limits,
                        const ReadRules& rules, const std::atomic<bool>* cancel,
                        DatasetColumns* columns) {
  std::string hash = Read(fd, path, limits, rules, std::nullopt, cancel, columns, nullptr);
  columns->files = 0;
  columns->files_alike = false;
  columns->split_type.reset();
  return hash;
}

}  // namespace evald
