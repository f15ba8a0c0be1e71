#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "evald/error.h"
#include "evald/json.h"
#include "orchestrator/report/progress.h"

namespace evald::cli {

/// A text member of a service's answer, fit for one line of a terminal (PrintableLine of
/// base/text.h). "" if it is absent or no text.
std::string TextOf(const Json& object, const char* name);
/// The same for any text. With `lines`, line ends and tabs stay.
std::string ForTerminal(const std::string& text, bool lines = false);

/// Whether a run in this state is over.
bool IsOver(const std::string& state);

/// The exit status of a run that is over: its `exit_status`, or 3 if it has none, like a cancelled
/// run.
ExitStatus StatusOfRun(const Json& run);

/// A Run resource's progress for the progress display.
ProgressSnapshot SnapshotOf(const Json& progress);

/// Runs as an aligned table with a header line, at most `columns` wide. If there is no room for
/// all, users, priorities and names give way to scores.
std::vector<std::string> RunTable(const Json& runs, size_t columns);

/// For each device of these hosts that is set aside, what there is to say.
std::vector<std::string> SetAsideLines(const Json& hosts);

/// The form of RunDetails.
struct DetailsForm {
  size_t columns = 80;
  bool all = false;         ///< each task of a group
  bool whole_words = true;  ///< a path that is longer than a line stays whole
};
/// One run for people: its facts, progress, scores and problems.
std::vector<std::string> RunDetails(const Json& run, const DetailsForm& form = {});

/// "gsm8k 0.4120, mmlu 0.2530", from a Run resource or a run.state event's data. Tasks of a group
/// with a score are left out. Scores that do not fit into `columns` are counted: "and 12 more".
std::string ScoreText(const Json& run, size_t columns = SIZE_MAX);

/// "/v1/runs/<id>", with the id encoded.
std::string RunPath(const std::string& run);

}  // namespace evald::cli
