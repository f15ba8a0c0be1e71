#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "base/text.h"
#include "datasets/documents.h"
#include "evald/error.h"
#include "python/number.h"
#include "python/unicode.h"

namespace evald {
namespace {

struct Record {
  std::vector<std::string> fields;
  std::vector<bool> quoted;
  size_t line = 1;
};

// Whether pandas.read_csv skips the line (skip_blank_lines): it has no separator, and nothing but
// spaces and tabs.
bool IsBlank(const Record& record) {
  return record.fields.size() == 1 && !record.quoted[0] &&
         record.fields[0].find_first_not_of(" \t") == std::string::npos;
}

// Cuts CSV text into records, at separators and newlines outside quotes. "" within quotes is a
// quote.
std::vector<Record> ReadRecords(std::string_view text, const std::string& name, char separator) {
  std::vector<Record> records;
  size_t line = 1;
  for (size_t at = 0; at < text.size();) {
    Record record;
    record.line = line;
    std::string field;
    bool quoted = false;
    bool done = false;
    while (!done) {
      if (at < text.size() && text[at] == '"' && field.empty() && !quoted) {
        quoted = true;
        for (++at;; ++at) {
          if (at >= text.size()) {
            throw Error(ErrorKind::kInput,
                        fmt::format("{}:{}: a quoted field is not closed", name, record.line));
          }
          if (text[at] == '"' && at + 1 < text.size() && text[at + 1] == '"') {
            field += '"';
            ++at;
          } else if (text[at] == '"') {
            ++at;
            break;
          } else {
            line += text[at] == '\n' ? 1 : 0;
            field += text[at];
          }
        }
      } else if (at >= text.size() || text[at] == separator || text[at] == '\n' ||
                 text[at] == '\r') {
        record.fields.push_back(std::move(field));
        record.quoted.push_back(quoted);
        field.clear();
        quoted = false;
        done = at >= text.size() || text[at] != separator;
        if (at < text.size() && text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n')
          ++at;
        ++at;
      } else {
        field += text[at++];
      }
    }
    ++line;
    if (!IsBlank(record)) records.push_back(std::move(record));
  }
  return records;
}

// Whether pandas.read_csv takes the text for a missing value (pandas/_libs/parsers.pyx,
// STR_NA_VALUES).
bool IsMissing(const std::string& text) {
  static const std::set<std::string> kMissing = {
      "",     "#N/A",   "#N/A N/A", "#NA",  "-1.#IND", "-1.#QNAN", "-NaN",
      "-nan", "1.#IND", "1.#QNAN",  "<NA>", "N/A",     "NA",       "NULL",
      "NaN",  "None",   "n/a",      "nan",  "null"};
  return kMissing.count(text) != 0;
}

bool IsBoolean(const std::string& text) {
  return (text.size() == 4 && ::strcasecmp(text.c_str(), "true") == 0) ||
         (text.size() == 5 && ::strcasecmp(text.c_str(), "false") == 0);
}

// Digits with an optional sign, without the white space around them; empty for any other text.
std::string_view IntegerText(const std::string& text) {
  const std::string_view trimmed = Trim(text);
  const size_t sign = !trimmed.empty() && (trimmed[0] == '-' || trimmed[0] == '+') ? 1 : 0;
  const bool integer = trimmed.size() > sign &&
                       trimmed.find_first_not_of("0123456789", sign) == std::string_view::npos;
  return integer ? trimmed : std::string_view();
}

template <typename T>
std::optional<T> ParseInteger(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Whether pandas takes the text for a number: digits may have ASCII white space around them,
// infinity may not, and "nan" is a missing value or text.
bool IsFloat(const std::string& text) {
  if (!IsAscii(text) || text.find('_') != std::string::npos) return false;
  const std::optional<double> value = python::ParseFloat(text);
  if (!value || std::isnan(*value)) return false;
  const bool word = text.find_first_of("nN") != std::string::npos;
  return !word || Trim(text).size() == text.size();
}

// The rows of one chunk, whose columns get their types together.
class ChunkReader {
 public:
  ChunkReader(const std::vector<Record>& records, size_t begin, size_t end, const std::string& name)
      : records_(records), begin_(begin), end_(end), name_(name), header_(records[0].fields) {}

  CsvChunk Read() const {
    CsvChunk chunk;
    chunk.type.kind = Kind::kStruct;
    for (size_t c = 0; c < header_.size(); ++c) chunk.type.FindOrAdd(header_[c], TypeOf(c));
    for (size_t i = begin_; i < end_; ++i) {
      Json row = Json::object();
      auto& members = row.get_ref<Json::object_t&>();  // names differ, so none is looked up
      members.reserve(header_.size());
      for (size_t c = 0; c < header_.size(); ++c)
        members.emplace_back(header_[c], ValueOf(Text(i, c), chunk.type.parts[c].kind));
      chunk.rows.push_back(std::move(row));
      chunk.lines.push_back(records_[i].line);
    }
    return chunk;
  }

 private:
  using Kind = ColumnType::Kind;

  const std::string& Text(size_t i, size_t column) const {
    static const std::string kLacking;
    const auto& fields = records_[i].fields;
    return column < fields.size() ? fields[column] : kLacking;
  }

  // A column has the narrowest type that all its values allow. A missing value turns integers into
  // floats.
  Kind TypeOf(size_t column) const {
    bool integer = true;
    bool number = true;
    bool boolean = true;
    bool missing = false;
    bool any = false;
    for (size_t i = begin_; i < end_; ++i) {
      const std::string& text = Text(i, column);
      if (IsMissing(text)) {
        missing = true;
        continue;
      }
      any = true;
      integer = integer && !IntegerText(text).empty();
      number = number && (integer || IsFloat(text));
      boolean = boolean && IsBoolean(text);
    }
    if (any && boolean) return Kind::kBoolean;
    if (any && integer) return IntegerType(column, missing);
    return number ? Kind::kFloat : Kind::kText;
  }

  // The type of a column of whole numbers. Beyond 64 bits pandas has several types, none of which
  // templates have.
  Kind IntegerType(size_t column, bool missing) const {
    bool fits = true;
    bool negative = false;
    bool fits_unsigned = true;
    for (size_t i = begin_; i < end_; ++i) {
      const std::string_view text = IntegerText(Text(i, column));
      if (text.empty()) continue;
      fits = fits && ParseInteger<int64_t>(text).has_value();
      negative = negative || text[0] == '-';
      fits_unsigned = fits_unsigned && (text[0] == '-' || ParseInteger<uint64_t>(text).has_value());
    }
    if (fits) return missing ? Kind::kFloat : Kind::kInteger;
    if (negative && fits_unsigned && !missing) return Kind::kText;
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: the column '{}' holds integers beyond 63 bits", name_, header_[column]),
        "write them so that they are no numbers");
  }

  static Json ValueOf(const std::string& text, Kind type) {
    if (IsMissing(text)) return nullptr;
    switch (type) {
      case Kind::kInteger:
        return ParseInteger<int64_t>(IntegerText(text)).value_or(0);
      case Kind::kFloat:
        return python::ParseFloat(text).value_or(0);
      case Kind::kBoolean:
        return text[0] == 't' || text[0] == 'T';
      default:
        return text;
    }
  }

  const std::vector<Record>& records_;
  size_t begin_;
  size_t end_;
  const std::string& name_;
  const std::vector<std::string>& header_;
};

}  // namespace

std::vector<CsvChunk> ParseCsv(std::string_view text, const std::string& name, size_t rows_max,
                               const CsvForm& form) {
  if (!IsUtf8(text)) throw Error(ErrorKind::kInput, name + ": the file is not valid UTF-8");
  std::vector<Record> records = ReadRecords(text, name, form.separator);
  if (!form.columns.empty()) {
    if (!form.header) records.insert(records.begin(), Record());
    if (records.empty()) return {};
    records[0].fields = form.columns;
  }
  if (records.size() < 2) return {};
  const std::vector<std::string>& header = records[0].fields;
  if (std::set<std::string>(header.begin(), header.end()).size() != header.size()) {
    throw Error(ErrorKind::kInput, name + ":1: two columns have one name");
  }
  for (const Record& record : records) {
    if (record.fields.size() > header.size()) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}:{}: found {} fields, expected at most {} as in {}", name,
                              record.line, record.fields.size(), header.size(),
                              form.columns.empty() ? "the first line" : "column_names"));
    }
  }
  std::vector<CsvChunk> chunks;
  for (size_t begin = 1, end = 0; begin < records.size(); begin = end) {
    end = begin + std::min(rows_max, records.size() - begin);
    chunks.push_back(ChunkReader(records, begin, end, name).Read());
  }
  return chunks;
}

}  // namespace evald
