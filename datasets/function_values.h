#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "evald/json.h"
#include "task_code/task_code.h"

namespace evald {

/// The values that a task's Python functions give for documents that stay in the task's process.
/// Values are asked for in batches, since documents are mostly taken in their order. One thread at
/// a time.
class FunctionValues {
 public:
  /// `code` must outlive this object. `batch`: documents of one call; 1 if few of the table's
  /// documents are wanted. No function is called for a document beyond `count`.
  FunctionValues(TaskCode* code, CodeTable table, int64_t count, int64_t batch)
      : code_(code), table_(std::move(table)), count_(count), batch_(batch) {}

  /// The function's value for document `at`; a tuple is a list, or the text that Python's `str`
  /// makes of it. Throws like TaskCode::Apply.
  const Json& Value(const std::string& function, int64_t at, bool tuples_as_text = false);

 private:
  struct Window {
    int64_t first = 0;
    std::vector<Json> values;
  };

  TaskCode* code_;
  CodeTable table_;
  int64_t count_;
  int64_t batch_;
  std::map<std::pair<std::string, bool>, Window> windows_;
};

/// A document whose fields are evaluated, and its place among those of which Python functions are
/// asked.
struct DocRef {
  // Without Python functions a document stands for itself.
  DocRef(const Json& row) : row(row) {}  // NOLINT(google-explicit-constructor)
  DocRef(const Json& row, FunctionValues* values, int64_t at) : row(row), values(values), at(at) {}

  const Json& row;
  FunctionValues* values = nullptr;  ///< null: there are none
  int64_t at = 0;
};

}  // namespace evald
