#pragma once

#include "metrics/sandbox/sandbox.h"

namespace evald {

/// Runs a small program in the sandbox. Throws Error(kInfrastructure) that names what this host
/// lacks, so that it is said once, before anything is generated.
void CheckSandbox(const SandboxOptions& options);

}  // namespace evald
