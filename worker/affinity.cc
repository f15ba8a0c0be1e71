#include "worker/affinity.h"

#include <fmt/format.h>
#include <sched.h>

#include <cerrno>
#include <charconv>

#include "base/file.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace {

int ParseCpu(std::string_view text, const std::string& whole) {
  int cpu = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cpu);
  if (error != std::errc() || end != text.data() + text.size() || cpu < 0 || cpu >= CPU_SETSIZE) {
    throw Error(ErrorKind::kUsage, fmt::format("'{}' is not a list of CPUs", whole),
                "write it as 0-3,8");
  }
  return cpu;
}

}  // namespace

void SetCpuAffinity(const std::string& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const std::string& part : Split(cpus, ',')) {
    const size_t dash = part.find('-');
    const int first = ParseCpu(std::string_view(part).substr(0, dash), cpus);
    const int last = dash == std::string::npos ? first : ParseCpu(part.substr(dash + 1), cpus);
    for (int cpu = first; cpu <= last; ++cpu) CPU_SET(cpu, &set);
  }
  if (::sched_setaffinity(0, sizeof set, &set) != 0) ThrowErrno(cpus, "bind to these CPUs", errno);
}

}  // namespace evald
