#pragma once

#include "base/command_line.h"
#include "orchestrator/verdict/report_files.h"

namespace evald::cli {

/// --gates, --junit, --markdown and --html.
void AddVerdictFlags(Command command, VerdictOptions* options);

/// The verdict for people on standard output; in a GitHub workflow its annotations too.
void PrintVerdict(const Judgement& judgement);

}  // namespace evald::cli
