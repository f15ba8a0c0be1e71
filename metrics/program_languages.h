#pragma once

#include <set>
#include <string>

#include "evald/task.h"
#include "prepared/prepared_task.h"

namespace evald {

/// The languages in which a task's metrics run the model's programs, but for Python functions in
/// the warm interpreter. `prepared` gives those that only documents name; null if they are not
/// known yet.
std::set<std::string> ProgramLanguages(const TaskDefinition& task, const PreparedTask* prepared);

/// Throws Error(kInput) if this host lacks the compiler or the interpreter of one of them, with the
/// line that installs it.
void RequireProgramLanguages(const TaskDefinition& task, const PreparedTask* prepared);

}  // namespace evald
