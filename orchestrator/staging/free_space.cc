#include "orchestrator/staging/free_space.h"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include <cerrno>

#include "base/file.h"
#include "base/memory_limits.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;

std::vector<SpaceLimit> CgroupMemoryLimits(const fs::path& proc, const std::string& prefix) {
  std::vector<SpaceLimit> limits;
  for (const MemoryLimit& limit : CgroupMemory(proc, prefix)) {
    limits.push_back({"the memory limit of this container or job (cgroup " + limit.group + ")",
                      limit.free, limit.total,
                      "give the container or job more memory (docker run --memory, sbatch --mem): "
                      "staged files count as its memory"});
  }
  return limits;
}

bool IsTmpfs(const fs::path& path) {
  struct statfs info{};
  return ::statfs(path.c_str(), &info) == 0 &&
         (info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC);
}

fs::path ExistingPartOf(const fs::path& root) {
  std::error_code error;
  fs::path part = fs::absolute(root, error).lexically_normal();
  while (part.has_relative_path() && !fs::is_directory(part, error)) part = part.parent_path();
  return part;
}

std::vector<SpaceLimit> SpaceIn(const fs::path& root) {
  struct statvfs info{};
  if (::statvfs(root.c_str(), &info) != 0) ThrowErrno(root, "statvfs", errno);
  const bool memory = IsTmpfs(root);
  std::vector<SpaceLimit> limits;
  // A tmpfs mounted with size=0 has no limit of its own and reports no blocks.
  if (!memory || info.f_blocks > 0) {
    limits.push_back({"the file system of " + root.string(),
                      uint64_t{info.f_bavail} * info.f_frsize,
                      uint64_t{info.f_blocks} * info.f_frsize,
                      memory ? "make it larger (docker run --shm-size=SIZE; on a host, mount -o "
                               "remount,size=SIZE /dev/shm), or set staging.root (--staging-root "
                               "of an agent) to a folder with space"
                             : "free some space, or set staging.root (--staging-root of an agent) "
                               "to a folder with space"});
  }
  if (!memory) return limits;
  if (const MemoryLimit host = HostMemory(); host.free > 0) {
    limits.push_back({"this host's available memory", host.free, host.total,
                      "free memory (evald stage --drop all), use a host with more, or set "
                      "staging.root (--staging-root of an agent) to a folder on a disk"});
  }
  for (SpaceLimit& limit : CgroupMemoryLimits("/proc/self", "")) limits.push_back(std::move(limit));
  return limits;
}

std::optional<SpaceLimit> Shortage(const fs::path& root, uint64_t bytes) {
  for (SpaceLimit& limit : SpaceIn(root)) {
    if (limit.free < bytes) return std::move(limit);
  }
  return std::nullopt;
}

void ThrowNoSpace(const fs::path& root, uint64_t bytes) {
  if (const auto shortage = Shortage(root, bytes)) ThrowShortage(*shortage, bytes, root);
  throw NoSpace(fmt::format("{}: staging needs {} ({} bytes), and the file system has less space",
                            root.string(), HumanBytes(bytes), bytes),
                "see whether a quota holds there, or set staging.root to another folder");
}

void ThrowShortage(const SpaceLimit& limit, uint64_t bytes, const fs::path& root) {
  throw NoSpace(fmt::format("{}: staging needs {} ({} bytes), but {} has {} free ({} bytes) of {}",
                            root.string(), HumanBytes(bytes), bytes, limit.what,
                            HumanBytes(limit.free), limit.free, HumanBytes(limit.total)),
                limit.remedy);
}

}  // namespace evald
