#include "datasets/table_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr int64_t kRowsOfACall = 4096;

void RequireColumns(const std::string& name, const std::vector<std::string>& columns,
                    Documents* out) {
  if (out->columns.empty()) out->columns = columns;
  if (std::is_permutation(columns.begin(), columns.end(), out->columns.begin(),
                          out->columns.end())) {
    return;
  }
  throw Error(ErrorKind::kInput,
              fmt::format("{}: found the columns {}, expected those of the split's first file: {}",
                          name, Join(columns, ", "), Join(out->columns, ", ")));
}

// The row with its columns in the order of the first file.
Json Ordered(const Json& row, const std::vector<std::string>& columns) {
  Json ordered = Json::object();
  for (const std::string& column : columns) ordered[column] = row.value(column, Json());
  return ordered;
}

bool IsIn(const std::optional<RowRange>& range, const Json& row, const std::string& where) {
  if (!range) return true;
  const auto value = Field<int64_t>(row, range->field, where);
  return value >= range->from && value <= range->to;
}

}  // namespace

std::string ReadTableFile(TableReader* reader, const DataFile& file, const DataLimits& limits,
                          const std::optional<RowRange>& range, const std::atomic<bool>* cancel,
                          Documents* out) {
  const std::string name = file.path.string();
  reader->StopWhen([cancel] { return cancel != nullptr && cancel->load(); });
  std::string hash;
  const CodeTable table = reader->Open(file.fd, name, limits.whole_bytes, &hash);
  if (table.count == 0) throw Error(ErrorKind::kInput, name + ": the file has no documents");
  RequireColumns(name, table.columns, out);
  for (int64_t first = 0; first < table.count;) {
    const std::vector<Json> rows =
        reader->Read(name, table, first, std::min(kRowsOfACall, table.count - first));
    for (const Json& packed : rows) {
      const std::string where = fmt::format("{}: row {}", name, ++first);
      if (!IsIn(range, packed[0], where)) continue;
      out->rows.push_back(Ordered(packed[0], out->columns));
      out->where.push_back(where);
      if (packed.size() > 1) out->python.resize(out->rows.size());
      if (packed.size() > 1) out->python.back() = packed[1];
    }
  }
  if (!out->python.empty()) out->python.resize(out->rows.size());
  return hash;
}

}  // namespace evald
