#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "evald/json.h"

namespace evald::bench {

/// How a started program ended.
struct CommandResult {
  double seconds = 0;      ///< wall time, from start to end
  double cpu_seconds = 0;  ///< user and system, of it and of all its waited-for descendants
  std::string output;      ///< standard output
};

/// Runs a program to its end. Throws Error(kInfrastructure) when it does not end with status 0.
CommandResult RunCommand(const std::vector<std::string>& command);

/// Writes `text` and gives the path.
std::filesystem::path WriteText(const std::filesystem::path& path, const std::string& text);

/// The median of an unsorted list that is not empty.
double Median(std::vector<double> values);

}  // namespace evald::bench
