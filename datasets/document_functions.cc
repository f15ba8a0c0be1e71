#include "datasets/document_functions.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "evald/error.h"
#include "python/value.h"

namespace evald {
namespace {

[[noreturn]] void ThrowColumn(const Json& row, const std::string& column, const char* expected) {
  constexpr size_t kShownBytes = 100;
  const auto found = row.find(column);
  const std::string shown =
      found == row.end() ? "absent" : Shortened(PythonRepr(*found), kShownBytes);
  throw Error(ErrorKind::kInput,
              fmt::format("the column '{}' is {}, expected {}", column, shown, expected),
              "compare the task's data with its source");
}

template <typename Work>
auto AtRow(const Documents& documents, size_t i, Work work) -> decltype(work()) {
  try {
    return work();
  } catch (Error& error) {
    throw error.AddContext(documents.where[i]);
  }
}

}  // namespace

void MapRows(Documents* documents, const std::function<Json(const Json& row)>& change) {
  documents->python.clear();  // the rows as they were
  for (size_t i = 0; i < documents->rows.size(); ++i) {
    Json& row = documents->rows[i];
    const Json made = AtRow(*documents, i, [&] { return change(row); });
    for (const auto& [name, value] : made.items()) {
      row[name] = value;
      if (i > 0) continue;
      std::vector<std::string>& columns = documents->columns;
      if (std::find(columns.begin(), columns.end(), name) == columns.end()) columns.push_back(name);
    }
  }
}

void FilterRows(Documents* documents, const std::function<bool(const Json& row)>& keeps) {
  documents->python.clear();
  size_t kept = 0;
  for (size_t i = 0; i < documents->rows.size(); ++i) {
    if (!AtRow(*documents, i, [&] { return keeps(documents->rows[i]); })) continue;
    if (kept < i) {
      documents->rows[kept] = std::move(documents->rows[i]);
      documents->where[kept] = std::move(documents->where[i]);
    }
    ++kept;
  }
  documents->rows.resize(kept);
  documents->where.resize(kept);
}

const std::string& TextColumn(const Json& row, const std::string& column) {
  const auto found = row.find(column);
  if (found == row.end() || !found->is_string()) ThrowColumn(row, column, "text");
  return found->get_ref<const std::string&>();
}

std::vector<std::string> TextsColumn(const Json& row, const std::string& column) {
  const auto found = row.find(column);
  const bool texts =
      found != row.end() && found->is_array() &&
      std::all_of(found->begin(), found->end(), [](const Json& one) { return one.is_string(); });
  if (!texts) ThrowColumn(row, column, "a list of texts");
  return found->get<std::vector<std::string>>();
}

}  // namespace evald
