#pragma once

#include <filesystem>
#include <string>

namespace evald {

/// Processors that this process may use, at least 1: those of its affinity mask, at most its
/// control group's CPU quota (cgroups(7), versions 1 and 2, with the groups above), and at most
/// those that Slurm gave the job on this node (SLURM_CPUS_ON_NODE).
int UsableCores();

/// Processors of the CPU quotas of a process's control groups; 0 without a quota. `groups` is the
/// text of /proc/<pid>/cgroup, `root` is /sys/fs/cgroup.
double QuotaCores(const std::string& groups, const std::filesystem::path& root);

}  // namespace evald
