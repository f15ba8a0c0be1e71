#include "metrics/sandbox/oom_kills.h"

#include <fstream>
#include <string>

namespace evald::sandbox {
namespace {

namespace fs = std::filesystem;

/// The number behind "oom_kill" in lines of a name and a number.
uint64_t OomKillsIn(const fs::path& file) {
  std::ifstream lines(file);
  std::string name;
  uint64_t number = 0;
  while (lines >> name >> number) {
    if (name == "oom_kill") return number;
  }
  return 0;
}

/// The path of this process's cgroup of version 2 below the cgroups' folder: "0::/PATH".
std::string UnifiedCgroup(const fs::path& own_cgroup) {
  std::ifstream lines(own_cgroup);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("0::/")) return line.substr(4);
  }
  return {};
}

}  // namespace

uint64_t CountOomKills(const fs::path& vmstat, const fs::path& own_cgroup,
                       const fs::path& cgroups) {
  return OomKillsIn(vmstat) + OomKillsIn(cgroups / UnifiedCgroup(own_cgroup) / "memory.events");
}

}  // namespace evald::sandbox
