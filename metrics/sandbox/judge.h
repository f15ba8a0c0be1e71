#pragma once

#include "metrics/sandbox/sandbox.h"
#include "metrics/sandbox/wire.h"

namespace evald::sandbox {

/// Whether the program should run once more, alone on this host: the clock ended the program before
/// its CPU time was used up, and a busy machine may be to blame. A program that slept has its
/// verdict.
bool NeedsSecondRun(const ProgramReport& report, const SandboxOptions& options);

/// What a finished program's report means. Only the nonce in the completion record passes, and only
/// within the CPU time.
ProgramOutcome Judge(const ProgramReport& report, const ProgramRequest& request,
                     const SandboxOptions& options);

}  // namespace evald::sandbox
