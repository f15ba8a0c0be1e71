#pragma once

#include <filesystem>
#include <string>

#include "orchestrator/verdict/judgement.h"

namespace evald {

/// The options of the command line about gates. An empty member is not given.
struct VerdictOptions {
  std::string gates;                  ///< a policy file in place of eval.yaml's gates
  std::string baseline;               ///< in place of the policy's
  std::string junit, markdown, html;  ///< files to write
};

/// eval.yaml's policy, replaced where the command line says otherwise. Reads the policy file.
/// Throws Error(kUsage).
GatePolicy PolicyOf(const VerdictOptions& options, const GatePolicy& policy);

/// Writes the requested reports. If `folder` is the folder of a complete run, also writes
/// `report.html` and (with gates) `verdict.json` there. In a GitHub workflow, appends to the step's
/// summary. Throws Error.
void WriteReports(const VerdictOptions& options, const Judgement& judgement,
                  const std::filesystem::path& folder);

/// Whether this runs in a step of a GitHub workflow.
bool InGithubActions();

}  // namespace evald
