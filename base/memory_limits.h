#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace evald {

/// A bound on the memory of a process.
struct MemoryLimit {
  std::string group;   ///< the cgroup's folder; "" for the host
  uint64_t free = 0;   ///< bytes that may still be taken
  uint64_t total = 0;  ///< the limit itself
};

/// The limits of a process by `proc` (a folder such as /proc/self, of which `cgroup` and
/// `mountinfo` are read) in the cgroup hierarchies below `prefix` ("" but for tests), version 1 and
/// 2, from its own group up to the top of what is mounted. Page cache that the kernel can give up
/// counts as free. Levels without a limit are left out.
std::vector<MemoryLimit> CgroupMemory(const std::filesystem::path& proc, const std::string& prefix);

/// What the host has available (MemAvailable) of its memory; zeros where the kernel does not say.
MemoryLimit HostMemory();

/// The least of what the host and this process's groups have free; 0 where nothing says.
uint64_t AvailableMemory();

}  // namespace evald
