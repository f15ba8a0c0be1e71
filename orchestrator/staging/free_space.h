#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evald/error.h"

namespace evald {

/// Staging found too little space. The same staging may succeed once others have released theirs.
class NoSpace : public Error {
 public:
  NoSpace(const std::string& message, const std::string& remedy)
      : Error(ErrorKind::kInfrastructure, message, remedy) {}
};

/// One limit on the bytes that may be staged.
struct SpaceLimit {
  std::string what;    ///< "/dev/shm", "the memory limit of this container (cgroup)"
  uint64_t free = 0;   ///< bytes that are still free
  uint64_t total = 0;  ///< the limit itself
  std::string remedy;
};

/// All limits on writing into `root`: the free space in its file system and, if that is memory
/// (tmpfs, whose pages count as the writing process's memory), the host's available memory and
/// every cgroup limit above this process.
std::vector<SpaceLimit> SpaceIn(const std::filesystem::path& root);

/// The first limit with less than `bytes` free.
std::optional<SpaceLimit> Shortage(const std::filesystem::path& root, uint64_t bytes);

/// Throws NoSpace with the bytes needed, the bytes there, and a remedy.
[[noreturn]] void ThrowShortage(const SpaceLimit& limit, uint64_t bytes,
                                const std::filesystem::path& root);

/// Like ThrowShortage, for a `root` that a write found full.
[[noreturn]] void ThrowNoSpace(const std::filesystem::path& root, uint64_t bytes);

/// The nearest folder at or above `root` that exists: the place where a root will be made.
std::filesystem::path ExistingPartOf(const std::filesystem::path& root);

bool IsTmpfs(const std::filesystem::path& path);

/// The memory limits of a process in the cgroup hierarchies below `prefix` ("" except in tests),
/// version 1 and 2, from its own group up to the top of the mount. `proc` is a folder such as
/// /proc/self, whose `cgroup` and `mountinfo` are read. Page cache that the kernel can give up
/// counts as free. Levels without a limit are left out.
std::vector<SpaceLimit> CgroupMemoryLimits(const std::filesystem::path& proc,
                                           const std::string& prefix);

}  // namespace evald
