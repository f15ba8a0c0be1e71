#pragma once

#include <cstdint>
#include <filesystem>

namespace evald::sandbox {

/// The number of processes that the kernel's OOM killer has ended so far, as far as this process is
/// told: `oom_kill` of `vmstat` (the whole host's; Linux 4.13) and of the memory.events file of
/// this process's cgroup (version 2), added up. So one kill may count twice; only a rise says
/// something. A file that is missing counts 0. Any thread.
uint64_t CountOomKills(const std::filesystem::path& vmstat = "/proc/vmstat",
                       const std::filesystem::path& own_cgroup = "/proc/self/cgroup",
                       const std::filesystem::path& cgroups = "/sys/fs/cgroup");

}  // namespace evald::sandbox
