#include "worker/native/cuda/numa.h"

#include <fmt/format.h>
#include <sched.h>

#include <charconv>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
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

bool ParseInt(std::string_view text, int* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && *value >= 0 &&
         *value < CPU_SETSIZE;
}

}  // namespace

std::vector<int> ParseCpuList(const std::string& text) {
  std::vector<int> cpus;
  const std::string list = text.substr(0, text.find('\n'));
  for (const std::string& part : Split(list, ',')) {
    const size_t dash = part.find('-');
    int first = 0, last = 0;
    if (!ParseInt(std::string_view(part).substr(0, dash), &first)) return {};
    last = first;
    if (dash != std::string::npos && !ParseInt(std::string_view(part).substr(dash + 1), &last)) {
      return {};
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

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

void BindThread(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) log::Debug("a copy thread was not bound");
}

}  // namespace evald::native::cuda
