#pragma once

#include "metrics/sandbox/sandbox.h"
#include "metrics/sandbox/wire.h"

namespace evald::sandbox {

/// Whether a SIGKILL ended the program that the sandbox did not send: the kernel's OOM killer, a
/// person, or the program itself.
bool KilledByUnknown(const ProgramReport& report, const SandboxOptions& options);

/// Whether the program must run once more, alone on this host, since its verdict is not certain:
/// - The clock ended it before its CPU time was used up, and a busy machine may be to blame. A
///   program that slept has its verdict.
/// - KilledByUnknown.
bool NeedsSecondRun(const ProgramReport& report, const SandboxOptions& options);

/// Throws Error(kInfrastructure) if the OOM killer may have ended the program's second run: the run
/// ended by a SIGKILL of unknown origin, and the kernel has counted `oom_kills` kills meanwhile
/// (CountOomKills). Without a kill of the kernel's, the program has killed itself twice.
void CheckSecondRun(const ProgramReport& report, const SandboxOptions& options, uint64_t oom_kills);

/// The outcome of a finished program, from its report. A program passes only with the nonce in its
/// completion record, and only within the CPU time.
ProgramOutcome Judge(const ProgramReport& report, const ProgramRequest& request,
                     const SandboxOptions& options);

}  // namespace evald::sandbox
