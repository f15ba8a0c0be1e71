#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "datasets/column_types.h"
#include "evald/json.h"

namespace evald {

/// The rows of one split, in order.
struct Documents {
  std::vector<Json> rows;  ///< objects; all have the same keys, null where the file has none
  std::vector<std::string> where;    ///< of each row: "file:line"
  std::vector<std::string> columns;  ///< the keys of the rows
};

/// Takes the rows whose integer `field` lies in [from, to].
struct RowRange {
  std::string field;
  int64_t from = 0;
  int64_t to = 0;
};

/// What a data file may hold.
struct DataLimits {
  uint64_t line_bytes = uint64_t{64} << 20;  ///< of a line of JSON
  uint64_t whole_bytes = uint64_t{1}
                         << 30;  ///< of a .json with one array and of a .csv, unpacked: read whole
};

enum class DataFormat {
  kByEnding,  ///< .jsonl, .json or .csv, each also with .gz
  kJson,
  kCsv,
};

/// How the files of a dataset are read.
struct ReadRules {
  /// Rows, columns and types are those of load_dataset("json" or "csv", data_files=...) of
  /// `datasets` 5: the rows are read in batches (JSON: 10 MiB; CSV: 10,000 rows), the first batch
  /// of the dataset decides the columns and their types, and later batches are cast to these.
  /// Otherwise a file stands for a dataset that has types already: its rows are one batch, and
  /// texts stay texts.
  bool as_loader = false;
  DataFormat format = DataFormat::kByEnding;
  char separator = ',';  ///< of the fields of CSV
};

/// The columns of a dataset while its files are read one after the other.
struct DatasetColumns {
  std::optional<ColumnType> type;        ///< decided by the first batch
  bool files_alike = false;              ///< the files of a split must agree without a cast
  std::optional<ColumnType> split_type;  ///< of the first batch of this split
  size_t files = 0;                      ///< read of this split
};

/// Appends the rows of a file: JSON (an object a line, one array of objects, or, in a file of at
/// most 320 KiB, objects one after the other) or CSV. Throws Error(kInput) that names file and line
/// for a file that is empty or broken, that has more than `limits` allow, that writes a key twice
/// in an object, or whose columns do not fit those of the dataset; and Error(kInfrastructure) when
/// `cancel` was set. A packed file takes no more memory than its rows. `path` is the name of the
/// open file `fd`. Gives the SHA-256 of the bytes that the file held as the rows were read.
std::string ReadDocuments(const UniqueFd& fd, const std::filesystem::path& path,
                          const DataLimits& limits, const ReadRules& rules,
                          const std::optional<RowRange>& range, const std::atomic<bool>* cancel,
                          DatasetColumns* columns, Documents* out);
/// The same of a file by its name, as one that stands for a dataset.
std::string ReadDocuments(const std::filesystem::path& path, const std::optional<RowRange>& range,
                          const std::atomic<bool>* cancel, Documents* out);

/// Keeps no more than decides the columns of the dataset. Gives the file's SHA-256 likewise.
std::string ReadColumns(const UniqueFd& fd, const std::filesystem::path& path,
                        const DataLimits& limits, const ReadRules& rules,
                        const std::atomic<bool>* cancel, DatasetColumns* columns);

/// Rows of a CSV file that pandas.read_csv types together.
struct CsvChunk {
  std::vector<Json> rows;
  std::vector<size_t> lines;
  ColumnType type;
};

/// The text of a CSV file (RFC 4180, with a header line) in chunks of at most `rows_max` rows.
/// Fields that a row lacks at its end are null. Throws Error(kInput) "<name>:<line>: ...".
std::vector<CsvChunk> ParseCsv(std::string_view text, const std::string& name,
                               size_t rows_max = SIZE_MAX, char separator = ',');

}  // namespace evald
