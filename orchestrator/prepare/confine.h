#pragma once

#include <filesystem>
#include <vector>

#include "orchestrator/config/eval_config.h"

namespace evald {

/// The resources of a process that reads other people's files.
struct Confinement {
  LimitsConfig limits;
  int threads = 1;                           ///< number of threads that it computes with
  std::vector<std::filesystem::path> read;   ///< folders that it may read; empty: everywhere
  std::vector<std::filesystem::path> write;  ///< folders that it may write to (and read)
};

/// Takes from this process, which has one thread, all that preparing does not need, in this order:
///
///   - no new privileges, no core file, first to be killed if the host runs out of memory;
///   - limits: memory (RLIMIT_DATA), size of a file, processor time, open files;
///   - Landlock, if the kernel has it: files outside of `read` and `write` cannot be opened,
///     nothing can be executed, and there is no network. This is a second wall; ReadRoots is the
///     first.
///
/// Memory is limited by RLIMIT_DATA and not by RLIMIT_AS. RLIMIT_DATA counts the memory that the
/// process writes to (heap, stacks, private mappings). It does not count mapped files, which the
/// kernel can take back, nor address space that allocators reserve. Sanitizers map terabytes, so
/// their builds have no memory limit.
///
/// Environment variables switch Landlock off for tests that put libraries or fail points into
/// processes (docs/faults.md). Throws Error(kInfrastructure) if the kernel refuses any of this
/// except Landlock.
void Confine(const Confinement& confinement);

/// Whether this build has a memory limit.
bool LimitsMemory();

}  // namespace evald
