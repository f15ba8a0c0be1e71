#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "evald/json.h"

namespace evald::bench {

/// The end of a program that was started.
struct CommandResult {
  double seconds = 0;  ///< wall time, from start to end
  /// user and system time of the program and of all descendants that were waited for
  double cpu_seconds = 0;
  std::string output;  ///< standard output
};

/// Runs a program to its end. Throws Error(kInfrastructure) if its exit status is not 0.
CommandResult RunCommand(const std::vector<std::string>& command);

/// Writes `text` to `path` and returns `path`.
std::filesystem::path WriteText(const std::filesystem::path& path, const std::string& text);

/// The median of an unsorted list that is not empty.
double Median(std::vector<double> values);

}  // namespace evald::bench
