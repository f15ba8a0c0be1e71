#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "evald/task.h"

namespace evald {

/// A file that a process reported for documents [first, end) of a task, with what it must hold.
struct ReportedFile {
  std::filesystem::path path;
  uint64_t bytes = 0;
  std::string hash;  ///< XXH3-128
  int64_t first = 0, end = 0;
  bool scores = false;  ///< otherwise generations
  TaskDefinition definition;
  std::filesystem::path prepared;
  /// Those of [first, end) that a scores file must hold; empty: all
  std::vector<int64_t> documents = {};
};

/// The reason why the file cannot count; "" if it can. An agent of another host may report any
/// bytes. So the file must have the reported content, and for each of its documents what the run's
/// readers expect: all generations of the task's kind, or a score under each of its filters, with
/// values that its aggregations take. Whether an answer or a score is true cannot be seen. Memory
/// is bounded by one document. Reads the whole file. Throws Error(kInfrastructure) soon after
/// `stopped` has become true.
std::string WhyNotSound(const ReportedFile& file, const std::function<bool()>& stopped);

}  // namespace evald
