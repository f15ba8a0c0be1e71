#include "base/open_files.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"
#include "evald/error.h"

namespace evald {
namespace {
// More is useless, and some programs look at every descriptor up to the limit
constexpr rlim_t kMost = 65'536;
}  // namespace

uint64_t RaiseOpenFiles(uint64_t needed) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) ThrowErrno("the limit of open files", "read", errno);
  const rlim_t wanted = std::min(limit.rlim_max, kMost);
  if (limit.rlim_cur < wanted) {
    const rlimit raised{wanted, limit.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit.rlim_cur = wanted;
  }
  if (limit.rlim_cur >= needed) return limit.rlim_cur;
  throw Error(
      ErrorKind::kUsage,
      fmt::format("the limit of open files is {}, and {} are needed", limit.rlim_cur, needed),
      fmt::format("raise the hard limit: ulimit -Hn {0}, or LimitNOFILE={0} in a systemd unit",
                  needed));
}

}  // namespace evald
