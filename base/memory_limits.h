#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace evald {

/// A bound on the memory of a process.
struct MemoryLimit {
  std::string group;   ///< the cgroup's folder; "" for the host
  uint64_t free = 0;   ///< bytes that are still free
  uint64_t total = 0;  ///< the limit itself
};

/// The limits of a process in the cgroup hierarchies below `prefix` ("" except in tests), version 1
/// and 2, from its own group up to the top of the mount. `proc` is a folder such as /proc/self,
/// whose `cgroup` and `mountinfo` are read. Page cache that the kernel can give up counts as free.
/// Levels without a limit are left out.
std::vector<MemoryLimit> CgroupMemory(const std::filesystem::path& proc, const std::string& prefix);

/// Whether this build can limit its own memory. Sanitizers map terabytes, so their builds cannot.
bool LimitsOwnMemory();
/// Bounds the memory that this process may write to (RLIMIT_DATA: heap, stacks, private mappings,
/// but no mapped files and no reserved addresses); beyond it, allocations fail. Does nothing unless
/// LimitsOwnMemory(). Never raises a bound. Throws Error(kInfrastructure) if the kernel refuses.
void LimitOwnMemory(uint64_t bytes);
/// Makes the kernel end this process before those with a lower score (0 to 1000) if the host runs
/// out of memory. A host may forbid it, which is no error.
void OfferToOomKiller(int score);

/// The host's available (MemAvailable) and total memory; zeros if the kernel does not say.
MemoryLimit HostMemory();

/// The least free memory among the host and this process's groups; 0 if none is known.
uint64_t AvailableMemory();

}  // namespace evald
