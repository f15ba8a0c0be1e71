#include "worker/affinity.h"

#include <fmt/format.h>

#include <cerrno>
#include <vector>

#include "base/cpu_list.h"
#include "base/file.h"
#include "evald/error.h"

namespace evald {

void SetCpuAffinity(const std::string& cpus) {
  const std::vector<int> parsed = ParseCpuList(cpus);
  if (parsed.empty()) {
    throw Error(ErrorKind::kUsage, fmt::format("'{}' is not a list of CPUs", cpus),
                "write it as 0-3,8");
  }
  if (!BindThread(parsed)) ThrowErrno(cpus, "bind to these CPUs", errno);
}

}  // namespace evald
