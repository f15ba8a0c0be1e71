#pragma once

#include <optional>
#include <string>
#include <vector>

#include "evald/error.h"
#include "evald/json.h"
#include "orchestrator/report/progress.h"

namespace evald::cli {

/// A text member of what a service said, fit for one line of a terminal (PrintableLine of
/// base/text.h). "" when it is absent or no text.
std::string TextOf(const Json& object, const char* name);
/// The same for any text; with `lines`, line ends and tabs stay.
std::string ForTerminal(const std::string& text, bool lines = false);

/// Whether a run in this state will not change any more.
bool IsOver(const std::string& state);

/// The exit status of a run that is over (its `exit_status`; 3 when it has none, as a cancelled
/// one).
ExitStatus StatusOfRun(const Json& run);

/// A Run resource's progress as the progress display takes it.
ProgressSnapshot SnapshotOf(const Json& progress);

/// Runs as an aligned table with a header line, at most `columns` wide.
std::vector<std::string> RunTable(const Json& runs, size_t columns);

/// A line for each device of these hosts that is set aside.
std::vector<std::string> SetAsideLines(const Json& hosts);

/// One run for people: what it is, how far it is, its scores and problems.
std::vector<std::string> RunDetails(const Json& run);

/// "/v1/runs/<id>", the id encoded.
/// "gsm8k 0.4120, mmlu 0.2530", of a Run resource or a run.state event's data.
std::string ScoreText(const Json& run);

std::string RunPath(const std::string& run);

}  // namespace evald::cli
