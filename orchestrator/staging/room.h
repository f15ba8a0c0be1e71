#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace evald {

/// One limit that staged bytes count against.
struct RoomLimit {
  std::string what;    ///< "/dev/shm", "the memory limit of this container (cgroup)"
  uint64_t free = 0;   ///< bytes that may still be taken
  uint64_t total = 0;  ///< the limit itself
  std::string remedy;
};

/// All limits on writing into `root`: the room in its file system and, where that is memory (tmpfs,
/// whose pages count as the memory of the process that writes them), what the host has available
/// and every cgroup limit above this process.
std::vector<RoomLimit> RoomIn(const std::filesystem::path& root);

/// The first limit with less than `bytes` free.
std::optional<RoomLimit> Shortage(const std::filesystem::path& root, uint64_t bytes);

/// Throws Error(kInfrastructure) with what is needed, what is there and what can be done.
[[noreturn]] void ThrowShortage(const RoomLimit& limit, uint64_t bytes,
                                const std::filesystem::path& root);

/// As ThrowShortage, for a `root` that was found full by a write.
[[noreturn]] void ThrowNoRoom(const std::filesystem::path& root, uint64_t bytes);

/// The nearest folder at or above `root` that exists: what a root that is not made yet will lie in.
std::filesystem::path ExistingPartOf(const std::filesystem::path& root);

bool IsTmpfs(const std::filesystem::path& path);

/// The memory limits of a process by `proc` (a folder such as /proc/self, of which `cgroup` and
/// `mountinfo` are read) in the cgroup hierarchies below `prefix` ("" but for tests), version 1 and
/// 2, from its own group up to the top of what is mounted. Page cache that the kernel can give up
/// counts as free. Levels without a limit are left out.
std::vector<RoomLimit> CgroupMemoryLimits(const std::filesystem::path& proc,
                                          const std::string& prefix);

}  // namespace evald
