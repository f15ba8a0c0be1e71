#include "worker/native/cuda/numa.h"

#include <fmt/format.h>
#include <sched.h>

#include "base/cpu_list.h"
#include "base/file.h"
#include "base/log.h"
#include "evald/error.h"

namespace evald::native::cuda {
namespace {

std::vector<int> Allowed() {
  std::vector<int> cpus;
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace

std::vector<int> CpusNear(int node) {
  const std::vector<int> allowed = Allowed();
  if (node < 0) return allowed;
  std::vector<int> near;
  try {
    const std::string path = fmt::format("/sys/devices/system/node/node{}/cpulist", node);
    for (const int cpu : ParseCpuList(ReadFile(path))) {
      for (const int other : allowed) {
        if (cpu == other) near.push_back(cpu);
      }
    }
  } catch (const Error& error) {
    log::Debug("NUMA node {}: {}", node, error.what());
  }
  return near.empty() ? allowed : near;
}

void BindNear(const std::vector<int>& cpus) {
  if (!cpus.empty() && !BindThread(cpus)) log::Debug("a thread was not bound");
}

}  // namespace evald::native::cuda
