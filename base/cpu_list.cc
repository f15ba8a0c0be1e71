#include "base/cpu_list.h"

#include <sched.h>

#include <charconv>
#include <string>

#include "base/text.h"

namespace evald {
namespace {

bool ParseCpu(std::string_view text, int* cpu) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *cpu);
  return error == std::errc() && end == text.data() + text.size() && *cpu >= 0 &&
         *cpu < CPU_SETSIZE;
}

}  // namespace

std::vector<int> ParseCpuList(std::string_view text) {
  std::vector<int> cpus;
  for (const std::string& part : Split(Trim(text), ',')) {
    const std::string_view range = part;
    const size_t dash = range.find('-');
    int first = 0;
    if (!ParseCpu(range.substr(0, dash), &first)) return {};
    int last = first;
    if (dash != std::string_view::npos && !ParseCpu(range.substr(dash + 1), &last)) return {};
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

bool BindThread(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  return ::sched_setaffinity(0, sizeof set, &set) == 0;
}

}  // namespace evald
