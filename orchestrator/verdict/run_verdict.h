#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/verdict/verdict.h"

namespace evald {

/// What the command line says of gates; empty members say nothing.
struct VerdictOptions {
  std::string gates;                  ///< a policy file instead of eval.yaml's gates
  std::string baseline;               ///< instead of the policy's
  std::string junit, markdown, html;  ///< files to write
};

/// A policy with its baseline opened, and where its reports go.
class RunVerdict {
 public:
  /// `policy` is eval.yaml's. Reads the policy file and opens the baseline, below `roots`, if there is one.
  /// Throws Error; nothing is written.
  RunVerdict(const VerdictOptions& options, const GatePolicy& policy, const ReadRoots& roots = {});

  const GatePolicy& policy() const { return policy_; }
  ResultSet* baseline() { return baseline_ ? &*baseline_ : nullptr; }

  /// Judges results whose samples lie in `folder` and writes the reports asked for; where the run
  /// is complete also `verdict.json` (with gates) and `report.html` in `folder`. In a GitHub
  /// workflow appends to the step's summary.
  Verdict Finish(const Json& results, const std::filesystem::path& folder, ExitStatus run_status,
                 const std::vector<std::string>& problems);

  /// The same for results opened before; writes only the reports asked for.
  Verdict Finish(ResultSet* candidate);

 private:
  Verdict Report(ResultSet* candidate, ExitStatus run_status,
                 const std::vector<std::string>& problems, const std::filesystem::path& folder);

  VerdictOptions options_;
  GatePolicy policy_;
  std::optional<ResultSet> baseline_;
};

/// Whether this runs in a step of a GitHub workflow.
bool InGithubActions();

}  // namespace evald
