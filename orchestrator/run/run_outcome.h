#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "evald/error.h"
#include "evald/json.h"

namespace evald {

/// The file of a run that is not complete, with the results of its finished tasks.
inline constexpr const char* kIncompleteResults = "results.incomplete.json";

/// How a run ended.
struct RunOutcome {
  ExitStatus status = ExitStatus::kDone;
  std::filesystem::path directory;
  Json results;                         ///< results.json; null if the run was never planned
  bool has_incomplete_results = false;  ///< kIncompleteResults was written
  std::vector<std::string> problems;    ///< why the run is incomplete, for people
  double seconds = 0;
  double device_share = 0;  ///< mean share of time in which the devices computed
};

}  // namespace evald
