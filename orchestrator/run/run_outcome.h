#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "evald/error.h"
#include "evald/json.h"

namespace evald {

/// How a run ended.
struct RunOutcome {
  ExitStatus status = ExitStatus::kDone;
  std::filesystem::path directory;
  Json results;                       ///< results.json; null if the run was never planned
  std::vector<std::string> problems;  ///< why the run is incomplete, for people
  double seconds = 0;
  double device_share = 0;  ///< mean share of time in which the devices computed
};

}  // namespace evald
