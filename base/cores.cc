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

// The smaller of two bounds, of which 0 is none.
double Tighter(double one, double other) {
  return one > 0 && other > 0 ? std::min(one, other) : std::max(one, other);
}

// The smallest quota of a group and of the groups above it.
template <typename Read>
double LeastAbove(const fs::path& root, fs::path group, Read read) {
  double least = 0;
  for (;; group = group.parent_path()) {
    least = Tighter(least, read(root / group.relative_path()));
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
  for (const std::string& line : Split(groups, '\n')) {  // "4:cpu,cpuacct:/a/b" or "0::/a/b"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);
    if (controllers.empty()) {
      least = Tighter(least, LeastAbove(root, group, [](const fs::path& at) {
                        return QuotaOf(TextIn(at / "cpu.max"));
                      }));
      continue;
    }
    const std::vector<std::string> names = Split(controllers, ',');
    if (std::find(names.begin(), names.end(), "cpu") == names.end()) continue;
    least = Tighter(
        least, LeastAbove(root / controllers, group, [](const fs::path& at) {
          return QuotaOf(TextIn(at / "cpu.cfs_quota_us") + " " + TextIn(at / "cpu.cfs_period_us"));
        }));
  }
  return least;
}

int UsableCores() {
  const double quota = QuotaCores(TextIn("/proc/self/cgroup"), "/sys/fs/cgroup");
  const double cores = Tighter(std::thread::hardware_concurrency(), Tighter(quota, SlurmCores()));
  return std::max(1, static_cast<int>(std::ceil(cores)));
}

}  // namespace evald
