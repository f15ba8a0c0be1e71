#pragma once

#include <filesystem>
#include <vector>

#include "orchestrator/config/eval_config.h"

namespace evald {

/// What a process may reach that reads other people's files.
struct Confinement {
  LimitsConfig limits;
  int threads = 1;                           ///< that it computes with
  std::vector<std::filesystem::path> read;   ///< folders that it may read; empty: everywhere
  std::vector<std::filesystem::path> write;  ///< folders that it may write to (and read)
};

/// Takes from this process, which has one thread, what preparing does not need, in this order:
///
///   - no new privileges, no core file, first to go where the host's memory ends;
///   - limits: memory (RLIMIT_DATA), size of a file, processor time, open files;
///   - Landlock, where the kernel has it: files outside of `read` and `write` are not opened, nothing is executed,
///     and there is no network. A second wall: ReadRoots is the first.
///
/// Memory is limited by RLIMIT_DATA, not by RLIMIT_AS: it counts what the process writes to (heap,
/// stacks, private mappings), and leaves alone the files that it maps, which the kernel can take
/// back, and the address space that allocators reserve. Sanitizers map terabytes, so their builds
/// have no limit of memory.
///
/// The environment switches Landlock off for tests that put libraries or fail points into processes
/// (docs/faults.md). Throws Error(kInfrastructure) for what the kernel refuses, but for Landlock.
void Confine(const Confinement& confinement);

/// Whether this build has a limit of memory.
bool LimitsMemory();

}  // namespace evald
