#include "orchestrator/staging/room.h"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/file.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

// Version 1 shows "no limit" as the largest multiple of the page size.
constexpr uint64_t kUnlimited = uint64_t{1} << 60;

std::string TextOf(const fs::path& path) {
  try {
    return ReadFile(path);
  } catch (const Error&) {
    return "";
  }
}

std::optional<uint64_t> NumberIn(std::string_view text) {
  text = Trim(text);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The number after `key` in lines of "key number" or "key: number kB".
uint64_t NumberAfter(const std::string& text, std::string_view key) {
  for (const std::string& line : Split(text, '\n')) {
    if (!line.starts_with(key)) continue;
    std::string_view rest = std::string_view(line).substr(key.size());
    const uint64_t unit = rest.ends_with(" kB") ? 1024 : 1;
    if (unit > 1) rest.remove_suffix(3);
    if (const auto value = NumberIn(rest)) return *value * unit;
  }
  return 0;
}

struct Version {
  const char* limit;
  const char* usage;
  const char*
      inactive;  // page cache on these two lists can be given up; tmpfs pages are not on them
  const char* active;
};
constexpr Version kV1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ",
                         "total_active_file "};
constexpr Version kV2 = {"memory.max", "memory.current", "inactive_file ", "active_file "};

void AddLimit(const fs::path& group, const Version& version, std::vector<RoomLimit>* limits) {
  const auto limit = NumberIn(TextOf(group / version.limit));
  const auto usage = NumberIn(TextOf(group / version.usage));
  if (!limit || !usage || *limit >= kUnlimited) return;
  const std::string stat = TextOf(group / "memory.stat");
  const uint64_t cache = NumberAfter(stat, version.inactive) + NumberAfter(stat, version.active);
  const uint64_t used = *usage - std::min(*usage, cache);
  limits->push_back({"the memory limit of this container or job (cgroup " + group.string() + ")",
                     *limit - std::min(*limit, used), *limit,
                     "give the container or job more memory (docker run --memory, sbatch --mem): "
                     "staged files count as its memory"});
}

// One line of mountinfo: where a cgroup hierarchy is mounted, and which part of it.
struct Mount {
  std::string root;
  std::string point;
};

std::optional<Mount> CgroupMount(const std::string& mountinfo, bool v2) {
  for (const std::string& line : Split(mountinfo, '\n')) {
    const std::vector<std::string> fields = Split(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() < 5 || fields.end() - dash < 4) continue;
    const std::vector<std::string> controllers = Split(dash[3], ',');
    const bool memory = std::count(controllers.begin(), controllers.end(), "memory") > 0;
    if (v2 ? dash[1] == "cgroup2" : dash[1] == "cgroup" && memory)
      return Mount{fields[3], fields[4]};
  }
  return std::nullopt;
}

void AddHierarchy(const std::string& mountinfo, const std::string& prefix, const std::string& path,
                  bool v2, std::vector<RoomLimit>* limits) {
  const std::optional<Mount> mount = CgroupMount(mountinfo, v2);
  if (!mount) return;
  // In a container the mount may show only the container's own part of the hierarchy.
  std::string inside = path;
  if (mount->root != "/") {
    inside = path.starts_with(mount->root) ? path.substr(mount->root.size()) : "";
  }
  const fs::path top = prefix + mount->point;
  fs::path group = top;
  AddLimit(group, v2 ? kV2 : kV1, limits);
  for (const std::string& part : Split(inside, '/')) {
    if (part == "..") return;
    if (part.empty()) continue;
    group /= part;
    AddLimit(group, v2 ? kV2 : kV1, limits);
  }
}

}  // namespace

std::vector<RoomLimit> CgroupMemoryLimits(const fs::path& proc, const std::string& prefix) {
  std::vector<RoomLimit> limits;
  const std::string mountinfo = TextOf(proc / "mountinfo");
  for (const std::string& line : Split(TextOf(proc / "cgroup"), '\n')) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::vector<std::string> controllers =
        Split(std::string_view(line).substr(first + 1, second - first - 1), ',');
    const bool v2 = line.starts_with("0::");
    if (!v2 && std::count(controllers.begin(), controllers.end(), "memory") == 0) continue;
    AddHierarchy(mountinfo, prefix, line.substr(second + 1), v2, &limits);
  }
  return limits;
}

bool IsTmpfs(const fs::path& path) {
  struct statfs info {};
  return ::statfs(path.c_str(), &info) == 0 &&
         (info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC);
}

fs::path ExistingPartOf(const fs::path& root) {
  std::error_code error;
  fs::path part = fs::absolute(root, error).lexically_normal();
  while (part.has_relative_path() && !fs::is_directory(part, error)) part = part.parent_path();
  return part;
}

std::vector<RoomLimit> RoomIn(const fs::path& root) {
  struct statvfs info {};
  if (::statvfs(root.c_str(), &info) != 0) ThrowErrno(root, "statvfs", errno);
  const bool memory = IsTmpfs(root);
  std::vector<RoomLimit> limits;
  // A tmpfs mounted with size=0 has no limit of its own and says that it has no blocks.
  if (!memory || info.f_blocks > 0) {
    limits.push_back(
        {"the file system of " + root.string(), uint64_t{info.f_bavail} * info.f_frsize,
         uint64_t{info.f_blocks} * info.f_frsize,
         memory ? "make it larger (docker run --shm-size=SIZE; on a host, mount -o "
                  "remount,size=SIZE /dev/shm), or set staging.root to a folder with room"
                : "free some space, or set staging.root to a folder with room"});
  }
  if (!memory) return limits;
  const std::string meminfo = TextOf("/proc/meminfo");
  if (const uint64_t available = NumberAfter(meminfo, "MemAvailable:"); available > 0) {
    limits.push_back({"this host's available memory", available, NumberAfter(meminfo, "MemTotal:"),
                      "free memory (evald stage --drop all), use a host with more, or set "
                      "staging.root to a folder on a disk"});
  }
  for (RoomLimit& limit : CgroupMemoryLimits("/proc/self", "")) limits.push_back(std::move(limit));
  return limits;
}

std::optional<RoomLimit> Shortage(const fs::path& root, uint64_t bytes) {
  for (RoomLimit& limit : RoomIn(root)) {
    if (limit.free < bytes) return std::move(limit);
  }
  return std::nullopt;
}

void ThrowNoRoom(const fs::path& root, uint64_t bytes) {
  if (const auto shortage = Shortage(root, bytes)) ThrowShortage(*shortage, bytes, root);
  throw Error(ErrorKind::kInfrastructure,
              fmt::format("{}: staging needs {} ({} bytes), and the file system took less",
                          root.string(), HumanBytes(bytes), bytes),
              "see whether a quota holds there, or set staging.root to another folder");
}

void ThrowShortage(const RoomLimit& limit, uint64_t bytes, const fs::path& root) {
  throw Error(ErrorKind::kInfrastructure,
              fmt::format("{}: staging needs {} ({} bytes), but {} has {} free ({} bytes) of {}",
                          root.string(), HumanBytes(bytes), bytes, limit.what,
                          HumanBytes(limit.free), limit.free, HumanBytes(limit.total)),
              limit.remedy);
}

}  // namespace evald
