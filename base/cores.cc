#include "base/cores.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <thread>

#include "base/file.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

std::string TextIn(const fs::path& file) {
  try {
    return ReadFile(file);
  } catch (const Error&) {
    return "";
  }
}

// "max 100000" and "150000 100000" of cpu.max; 0 without a quota.
double QuotaOf(const std::string& text) {
  std::istringstream words(text);
  double quota = 0, period = 0;
  return (words >> quota >> period) && quota > 0 && period > 0 ? quota / period : 0;
}

// The smallest quota of a group and of the groups above it.
template <typename Read>
double LeastAbove(const fs::path& root, fs::path group, Read read) {
  double least = 0;
  for (;; group = group.parent_path()) {
    const double quota = read(root / group.relative_path());
    if (quota > 0) least = least > 0 ? std::min(least, quota) : quota;
    if (!group.has_relative_path()) return least;
  }
}

double SlurmCores() {
  const char* node = std::getenv("SLURMD_NODENAME");  // set on the job's nodes, and not by salloc
  const char* cpus = std::getenv("SLURM_CPUS_ON_NODE");
  return node != nullptr && cpus != nullptr ? std::max(0, std::atoi(cpus)) : 0;
}

}  // namespace

double QuotaCores(const std::string& groups, const fs::path& root) {
  double least = 0;
  const auto take = [&](double quota) {
    if (quota > 0) least = least > 0 ? std::min(least, quota) : quota;
  };
  for (const std::string& line : Split(groups, '\n')) {  // "4:cpu,cpuacct:/a/b" or "0::/a/b"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);
    if (controllers.empty()) {
      take(LeastAbove(root, group,
                      [](const fs::path& at) { return QuotaOf(TextIn(at / "cpu.max")); }));
      continue;
    }
    const std::vector<std::string> names = Split(controllers, ',');
    if (std::find(names.begin(), names.end(), "cpu") == names.end()) continue;
    take(LeastAbove(root / controllers, group, [](const fs::path& at) {
      return QuotaOf(TextIn(at / "cpu.cfs_quota_us") + " " + TextIn(at / "cpu.cfs_period_us"));
    }));
  }
  return least;
}

int UsableCores() {
  double cores = std::max(1U, std::thread::hardware_concurrency());
  for (const double bound :
       {QuotaCores(TextIn("/proc/self/cgroup"), "/sys/fs/cgroup"), SlurmCores()}) {
    if (bound > 0) cores = std::min(cores, std::ceil(bound));
  }
  return std::max(1, static_cast<int>(cores));
}

}  // namespace evald
