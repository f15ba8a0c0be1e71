#pragma once

#include <filesystem>
#include <string>

#include "orchestrator/verdict/judgement.h"

namespace evald {

/// What the command line says of gates; empty members say nothing.
struct VerdictOptions {
  std::string gates;                  ///< a policy file instead of eval.yaml's gates
  std::string baseline;               ///< instead of the policy's
  std::string junit, markdown, html;  ///< files to write
};

/// eval.yaml's policy with what the command line says in its place. Reads the policy file. Throws
/// Error(kUsage).
GatePolicy PolicyOf(const VerdictOptions& options, const GatePolicy& policy);

/// Writes the reports that were asked for, and, where `folder` is that of a complete run,
/// `report.html` and (with gates) `verdict.json` there. In a GitHub workflow appends to the step's
/// summary. Throws Error.
void WriteReports(const VerdictOptions& options, const Judgement& judgement,
                  const std::filesystem::path& folder);

/// Whether this runs in a step of a GitHub workflow.
bool InGithubActions();

}  // namespace evald
