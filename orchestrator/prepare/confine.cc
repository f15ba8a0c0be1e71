#include "orchestrator/prepare/confine.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>

#include "base/file.h"
#include "base/memory_limits.h"
#include "orchestrator/prepare/landlock.h"

namespace evald {
namespace {

constexpr rlim_t kOpenFilesMax = 8192;
constexpr double kMoreCpuSeconds = 10;  // the process that waits for this one stops it first

void Limit(int resource, const char* what, rlim_t value) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0)
    ThrowErrno("process", what, errno);
  limit.rlim_cur = limit.rlim_max = std::min(limit.rlim_max, value);
  if (::setrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0)
    ThrowErrno("process", what, errno);
}

bool IsTested() {
  return std::getenv("LD_PRELOAD") != nullptr || std::getenv("EVALD_FAIL_POINT") != nullptr ||
         std::getenv("EVALD_FAIL_POINT_LOG") != nullptr;
}

}  // namespace

bool LimitsMemory() { return LimitsOwnMemory(); }

void Confine(const Confinement& confinement) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    ThrowErrno("process", "prctl(PR_SET_NO_NEW_PRIVS)", errno);
  OfferToOomKiller(1000);
  const LimitsConfig& limits = confinement.limits;
  Limit(RLIMIT_CORE, "setrlimit(RLIMIT_CORE)", 0);
  Limit(RLIMIT_NOFILE, "setrlimit(RLIMIT_NOFILE)", kOpenFilesMax);
  Limit(RLIMIT_FSIZE, "setrlimit(RLIMIT_FSIZE)", limits.disk_bytes);
  ::signal(SIGXFSZ, SIG_IGN);  // a write then fails with an error that names the file
  const double cpu = std::ceil(limits.seconds * confinement.threads + kMoreCpuSeconds);
  Limit(RLIMIT_CPU, "setrlimit(RLIMIT_CPU)", static_cast<rlim_t>(cpu));
  LimitOwnMemory(limits.memory_bytes);
  if (!IsTested()) RestrictByLandlock(confinement.read, confinement.write);
}

}  // namespace evald
