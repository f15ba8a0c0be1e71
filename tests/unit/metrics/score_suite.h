#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "evald/json.h"
#include "metrics/sandbox/sandbox.h"

namespace evald::test {

/// Scores a suite (tests/oracle/results_harness.py describes its form) in the same way as a run:
/// prepared folders, generations files, jobs, aggregation, samples, results. Writes into `out` and
/// returns the results. `runner` makes the sandbox. It is called for tasks that run code.
Json ScoreSuite(const Json& suite, const std::filesystem::path& out,
                const std::function<CodeRunner*()>& runner);

/// Reads a suite's folder into the object that ScoreSuite takes.
Json ReadSuite(const std::filesystem::path& folder);

}  // namespace evald::test
