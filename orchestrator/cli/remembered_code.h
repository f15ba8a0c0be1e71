#pragma once

#include "orchestrator/config/eval_config.h"

namespace evald::cli {

/// `--allow-task-code` is said once for a folder of task files. Its answer is kept in `state_dir`
/// by the content of the folder's Python files, so that a later command runs the same code without
/// the flag. A changed, new or missing file needs the flag again.
///
/// `said`: whether the command has the flag, which is then kept for each folder of `task_dirs`.
/// Else sets `task_code` to "allow" if every folder was allowed before as it is, and the file does
/// not say `refuse`. Throws Error(kInput) for a folder that cannot be read.
void RememberTaskCode(bool said, EvalConfig* config);

}  // namespace evald::cli
