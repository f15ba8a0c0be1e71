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
  /// objects; all have the same keys, with null where the file has none
  std::vector<Json> rows;
  std::vector<std::string> where;    ///< the place of each row: "file:line"
  std::vector<std::string> columns;  ///< the keys of the rows
  /// As PreparedDocument::python, for each row; empty if that is null for all
  std::vector<Json> python;
};

/// Selects the rows whose integer `field` lies in [from, to].
struct RowRange {
  std::string field;
  int64_t from = 0;
  int64_t to = 0;
};

/// Limits of a data file.
struct DataLimits {
  uint64_t line_bytes = uint64_t{64} << 20;  ///< of a line of JSON
  /// A .json with one array or a .csv, unpacked: these are read as a whole
  uint64_t whole_bytes = uint64_t{1} << 30;
  /// Lines of JSON after which reading stops, for a look at a file's beginning; 0: all are read
  size_t rows = 0;
};

enum class DataFormat {
  kByEnding,  ///< .jsonl, .json or .csv, each also with .gz
  kJson,
  kCsv,
  kText,   ///< a row {"text": line} for each line
  kTable,  ///< .parquet or .arrow (datasets/table_file.h)
};

/// The form of a CSV file, as pandas.read_csv takes it.
struct CsvForm {
  char separator = ',';
  std::vector<std::string> columns;  ///< their names; empty: the first line has them
  bool header = true;                ///< whether the first line has names, which `columns` replace
};

/// How the files of a dataset are read.
struct ReadRules {
  /// Rows, columns and types are those of load_dataset("json", "csv" or "text", data_files=...) of
  /// `datasets` 5: rows are read in batches (JSON: 10 MiB; CSV: 10,000 rows), the first batch of
  /// the dataset decides the columns and their types, and later batches are cast to these.
  /// Otherwise a file stands for a dataset that already has types: its rows are one batch, and
  /// texts stay texts.
  bool as_loader = false;
  DataFormat format = DataFormat::kByEnding;
  CsvForm csv;
};

/// The columns of a dataset while its files are read, one after another.
struct DatasetColumns {
  std::optional<ColumnType> type;        ///< decided by the first batch
  bool files_alike = false;              ///< the files of a split must agree without a cast
  std::optional<ColumnType> split_type;  ///< the type of this split's first batch
  size_t files = 0;                      ///< files of this split read so far
};

/// Appends the rows of a file: JSON (one object per line, one array of objects, or, in a file of at
/// most 320 KiB, a sequence of objects), CSV or lines of text. Throws Error(kInput) with file and
/// line for a file that is empty or broken, that exceeds `limits`, that writes a key twice in an
/// object, or whose columns do not fit the dataset's. Throws Error(kInfrastructure) if `cancel` is
/// set. A packed file takes no more memory than its rows. `path` is the name of the open file `fd`.
/// Returns the SHA-256 of the file's bytes at the time of reading, "" after a look at its
/// beginning.
std::string ReadDocuments(const UniqueFd& fd, const std::filesystem::path& path,
                          const DataLimits& limits, const ReadRules& rules,
                          const std::optional<RowRange>& range, const std::atomic<bool>* cancel,
                          DatasetColumns* columns, Documents* out);
/// The same for a file by its name, which stands for a dataset.
std::string ReadDocuments(const std::filesystem::path& path, const std::optional<RowRange>& range,
                          const std::atomic<bool>* cancel, Documents* out);

/// Keeps only what decides the columns of the dataset. Returns the file's SHA-256, too.
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
/// Missing fields at the end of a row are null. Throws Error(kInput) "<name>:<line>: ...".
std::vector<CsvChunk> ParseCsv(std::string_view text, const std::string& name,
                               size_t rows_max = SIZE_MAX, const CsvForm& form = {});

}  // namespace evald
