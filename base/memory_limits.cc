#include "base/memory_limits.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/file.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

// Version 1 shows "no limit" as the largest multiple of the page size.
constexpr uint64_t kUnlimited = uint64_t{1} << 60;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

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

void AddLimit(const fs::path& group, const Version& version, std::vector<MemoryLimit>* limits) {
  const auto limit = NumberIn(TextOf(group / version.limit));
  const auto usage = NumberIn(TextOf(group / version.usage));
  if (!limit || !usage || *limit >= kUnlimited) return;
  const std::string stat = TextOf(group / "memory.stat");
  const uint64_t cache = NumberAfter(stat, version.inactive) + NumberAfter(stat, version.active);
  const uint64_t used = *usage - std::min(*usage, cache);
  limits->push_back({group.string(), *limit - std::min(*limit, used), *limit});
}

// One line of mountinfo: the mount point of a cgroup hierarchy, and the part of it that is mounted.
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
                  bool v2, std::vector<MemoryLimit>* limits) {
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

bool LimitsOwnMemory() { return !kSanitized; }

void LimitOwnMemory(uint64_t bytes) {
  if (kSanitized) return;
  rlimit limit{};
  if (::getrlimit(RLIMIT_DATA, &limit) != 0) ThrowErrno("process", "getrlimit(RLIMIT_DATA)", errno);
  limit.rlim_cur = limit.rlim_max = std::min<rlim_t>(limit.rlim_max, bytes);
  if (::setrlimit(RLIMIT_DATA, &limit) != 0) ThrowErrno("process", "setrlimit(RLIMIT_DATA)", errno);
}

void OfferToOomKiller(int score) {
  const UniqueFd file(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  const std::string text = std::to_string(score);
  if (file && ::write(file.get(), text.data(), text.size()) < 0) return;
}

std::vector<MemoryLimit> CgroupMemory(const fs::path& proc, const std::string& prefix) {
  std::vector<MemoryLimit> limits;
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

MemoryLimit HostMemory() {
  const std::string meminfo = TextOf("/proc/meminfo");
  return {"", NumberAfter(meminfo, "MemAvailable:"), NumberAfter(meminfo, "MemTotal:")};
}

uint64_t AvailableMemory() {
  uint64_t least = HostMemory().free;
  for (const MemoryLimit& limit : CgroupMemory("/proc/self", "")) {
    least = least == 0 ? limit.free : std::min(least, limit.free);
  }
  return least;
}

}  // namespace evald
