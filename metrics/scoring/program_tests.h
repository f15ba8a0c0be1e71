#pragma once

#include <string>

#include "metrics/sandbox/sandbox.h"
#include "metrics/scoring/program_rule.h"

namespace evald {

/// Tests the program of one answer against a document's tests. An answer that is no program has
/// failed. Throws like CodeRunner.
ProgramOutcome TestProgram(CodeRunner* runner, const ProgramRule& rule,
                           const PreparedDocument& document, const std::string& target,
                           const std::string& answer);

/// Says in an outcome which of `count` tests it is of.
void AddCase(ProgramOutcome* outcome, size_t index, size_t count);

}  // namespace evald
