#pragma once

#include "base/command_line.h"
#include "orchestrator/verdict/report_files.h"

namespace evald::cli {

/// --gates, --junit, --markdown and --html.
void AddVerdictFlags(Command command, VerdictOptions* options);

/// Prints the verdict for people on standard output, and its annotations in a GitHub workflow.
void PrintVerdict(const Judgement& judgement);

}  // namespace evald::cli
