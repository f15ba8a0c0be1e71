#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "evald/json.h"
#include "metrics/sandbox/box.h"
#include "task_code/task_code.h"

namespace evald {

/// Reads files with tables, parquet and arrow, by the package pyarrow of a user's Python. The files
/// are not trusted, so they are read in the sandbox. One thread at a time.
class TableReader {
 public:
  /// Starts the process. `boxes` makes it for a process that may start none itself; null: this
  /// process starts it. Of `options`, `python` and `memory_bytes` count, and kUnsafe. Throws
  /// Error(kInfrastructure) if the interpreter is unusable or the host cannot isolate the process.
  TableReader(const TaskCodeOptions& options, sandbox::BoxMaker* boxes);

  /// Opens the file `fd` of the name `name`. All calls throw
  /// Error(kInput) "<name>: ..." for a file that is broken or has more than `bytes_max`, for
  /// columns of types that JSON has not, and if the Python lacks pyarrow; and
  /// Error(kInfrastructure) soon after `stopped` has become true. `hash` becomes the SHA-256 of the
  /// file's bytes.
  CodeTable Open(const UniqueFd& fd, const std::string& name, uint64_t bytes_max,
                 std::string* hash);

  /// At least one and at most `count` rows from number `first` on, each as [object] or [object,
  /// text] (PreparedDocument::python).
  std::vector<Json> Read(const std::string& name, const CodeTable& table, int64_t first,
                         int64_t count);

  void StopWhen(std::function<bool()> stopped) { box_.StopWhen(std::move(stopped)); }

 private:
  Json Answer(const std::string& name);

  std::string python_;
  sandbox::Box box_;
};

/// Whether the ending of a file's name is .parquet or .arrow.
bool IsTableFile(const std::string& name);

}  // namespace evald
