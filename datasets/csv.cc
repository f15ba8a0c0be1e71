#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "datasets/documents.h"
#include "evald/error.h"
#include "jinja/number.h"

namespace evald {
namespace {

struct Record {
  std::vector<std::string> fields;
  std::vector<bool> quoted;
  size_t line = 1;
};

// Cuts CSV text into records: commas, quotes with "" for a quote inside, newlines inside quotes.
std::vector<Record> ReadRecords(std::string_view text, const std::string& name) {
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
      } else if (at >= text.size() || text[at] == ',' || text[at] == '\n' || text[at] == '\r') {
        record.fields.push_back(std::move(field));
        record.quoted.push_back(quoted);
        field.clear();
        quoted = false;
        done = at >= text.size() || text[at] != ',';
        if (at < text.size() && text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n')
          ++at;
        ++at;
      } else {
        field += text[at++];
      }
    }
    ++line;
    const bool blank = record.fields.size() == 1 && record.fields[0].empty() && !record.quoted[0];
    if (!blank) records.push_back(std::move(record));
  }
  return records;
}

// What pandas.read_csv takes for a missing value (pandas/_libs/parsers.pyx, STR_NA_VALUES).
bool IsMissing(const std::string& text) {
  static const std::set<std::string> kMissing = {
      "",     "#N/A",   "#N/A N/A", "#NA",  "-1.#IND", "-1.#QNAN", "-NaN",
      "-nan", "1.#IND", "1.#QNAN",  "<NA>", "N/A",     "NA",       "NULL",
      "NaN",  "None",   "n/a",      "nan",  "null"};
  return kMissing.count(text) != 0;
}

enum class ColumnType { kInteger, kFloat, kBoolean, kText };

bool IsBoolean(const std::string& text) {
  return text == "True" || text == "TRUE" || text == "true" || text == "False" || text == "FALSE" ||
         text == "false";
}

bool IsInteger(const std::string& text) {
  const std::string_view trimmed = Trim(text);
  const size_t sign = !trimmed.empty() && (trimmed[0] == '-' || trimmed[0] == '+') ? 1 : 0;
  return trimmed.size() > sign && trimmed.size() - sign <= 18 &&
         trimmed.find_first_not_of("0123456789", sign) == std::string_view::npos;
}

bool IsFloat(const std::string& text) {
  if (text.find('_') != std::string::npos) return false;
  return jinja::ParseFloat(text).has_value();
}

// A column is as narrow as all its values allow; a missing value makes integers floats.
ColumnType TypeOf(const std::vector<Record>& records, size_t column) {
  bool integer = true;
  bool number = true;
  bool boolean = true;
  bool missing = false;
  for (size_t i = 1; i < records.size(); ++i) {
    const std::string& text = records[i].fields[column];
    if (IsMissing(text)) {
      missing = true;
      continue;
    }
    integer = integer && IsInteger(text);
    number = number && (integer || IsFloat(text));
    boolean = boolean && IsBoolean(text);
  }
  if (boolean && !missing) return ColumnType::kBoolean;
  if (integer && !missing) return ColumnType::kInteger;
  return number ? ColumnType::kFloat : ColumnType::kText;
}

Json ValueOf(const std::string& text, ColumnType type) {
  if (IsMissing(text)) return nullptr;
  switch (type) {
    case ColumnType::kInteger:
      return static_cast<int64_t>(std::stoll(text));
    case ColumnType::kFloat:
      return jinja::ParseFloat(text).value_or(0);
    case ColumnType::kBoolean:
      return text[0] == 't' || text[0] == 'T';
    case ColumnType::kText:
      return text;
  }
  return text;
}

}  // namespace

std::vector<Json> ParseCsv(std::string_view text, const std::string& name,
                           std::vector<size_t>* lines) {
  if (!IsUtf8(text)) throw Error(ErrorKind::kInput, name + ": the file is not valid UTF-8");
  const std::vector<Record> records = ReadRecords(text, name);
  if (records.size() < 2) return {};
  const std::vector<std::string>& header = records[0].fields;
  if (std::set<std::string>(header.begin(), header.end()).size() != header.size()) {
    throw Error(ErrorKind::kInput, name + ":1: two columns have one name");
  }
  for (const Record& record : records) {
    if (record.fields.size() != header.size()) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}:{}: found {} fields, expected {} as in the first line", name,
                              record.line, record.fields.size(), header.size()));
    }
  }
  std::vector<ColumnType> types;
  for (size_t c = 0; c < header.size(); ++c) types.push_back(TypeOf(records, c));
  std::vector<Json> rows;
  for (size_t i = 1; i < records.size(); ++i) {
    Json row = Json::object();
    for (size_t c = 0; c < header.size(); ++c) {
      row[header[c]] = ValueOf(records[i].fields[c], types[c]);
    }
    rows.push_back(std::move(row));
    lines->push_back(records[i].line);
  }
  return rows;
}

}  // namespace evald
