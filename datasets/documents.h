#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "evald/json.h"

namespace evald {

/// The rows of one split, in order.
struct Documents {
  std::vector<Json> rows;            ///< objects
  std::vector<std::string> where;    ///< of each row: "file:line"
  std::vector<std::string> columns;  ///< every key of any row, in the order they are first seen
};

/// Takes the rows whose integer `field` lies in [from, to].
struct RowRange {
  std::string field;
  int64_t from = 0;
  int64_t to = 0;
};

/// What a data file may hold.
struct DataLimits {
  uint64_t line_bytes = uint64_t{64} << 20;   ///< of a line of JSON
  uint64_t whole_bytes = uint64_t{1} << 30;   ///< of a .json with one array and of a .csv, unpacked: read whole
};

/// Appends the rows of a file, read by the ending of its name: .jsonl, .json (one array, or one
/// object a line), .csv, each also with .gz. Rows are objects; CSV columns get the types that
/// pandas.read_csv gives them, which is what the `datasets` library reads CSV with. Throws
/// Error(kInput) that names file and line for a file that is empty or broken or has more than `limits` allow,
/// and Error(kInfrastructure) when `cancel` was set. Lines are unpacked one after the other, so that a packed
/// file takes no more memory than its rows. `path` is the name of the open file `fd`.
void ReadDocuments(const UniqueFd& fd, const std::filesystem::path& path, const DataLimits& limits,
                   const std::optional<RowRange>& range, const std::atomic<bool>* cancel, Documents* out);
/// The same of a file by its name.
void ReadDocuments(const std::filesystem::path& path, const std::optional<RowRange>& range,
                   const std::atomic<bool>* cancel, Documents* out);

/// The text of a CSV file as rows of objects (RFC 4180, with a header line). `where` receives each
/// row's line number. Throws Error(kInput) "<name>:<line>: ...".
std::vector<Json> ParseCsv(std::string_view text, const std::string& name,
                           std::vector<size_t>* lines);

}  // namespace evald
