#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "evald/json.h"

namespace evald::cli {

/// A task of a run, or a group for all its tasks.
struct TaskRow {
  std::string name;
  size_t depth = 0;  ///< within groups
  bool group = false;
  int64_t documents = 0, scored = 0;
  std::string headline;  ///< "acc 0.2530"; "" before its end
};

/// The tasks of a Run resource. A group stands for its tasks; with `all`, its tasks follow the
/// group. A task in several groups stands in the first of them.
std::vector<TaskRow> TaskRows(const Json& run, bool all);

/// The names in the groups of a Run resource whose group has a score.
std::vector<std::string> NamesUnderScoredGroups(const Json& run);

}  // namespace evald::cli
