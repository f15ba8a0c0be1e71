#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "evald/json.h"
#include "metrics/sandbox/sandbox.h"

namespace evald::test {

/// Scores a suite (tests/oracle/results_harness.py says what that is) as a run does: prepared
/// folders, generations files, jobs, aggregation, samples, results. Writes into `out` and returns
/// the results. `runner` gives the sandbox; called for tasks that run code.
Json ScoreSuite(const Json& suite, const std::filesystem::path& out,
                const std::function<CodeRunner*()>& runner);

/// Reads a suite's folder into the object that ScoreSuite takes.
Json ReadSuite(const std::filesystem::path& folder);

}  // namespace evald::test
