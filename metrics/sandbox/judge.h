#pragma once

#include "metrics/sandbox/sandbox.h"
#include "metrics/sandbox/wire.h"

namespace evald::sandbox {

/// Whether the program must run once more, alone on this host: the clock ended it before its CPU
/// time was used up, and a busy machine may be to blame. A program that slept has its verdict.
bool NeedsSecondRun(const ProgramReport& report, const SandboxOptions& options);

/// The outcome of a finished program, from its report. A program passes only with the nonce in its
/// completion record, and only within the CPU time.
ProgramOutcome Judge(const ProgramReport& report, const ProgramRequest& request,
                     const SandboxOptions& options);

}  // namespace evald::sandbox
