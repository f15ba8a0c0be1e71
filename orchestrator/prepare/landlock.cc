#include "orchestrator/prepare/landlock.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "base/file.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

// Numbers of the system calls
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr unsigned kAskForVersion = 1;
constexpr int kRulePathBeneath = 1;

enum Access : uint64_t {
  kExecute = 1 << 0,
  kWriteFile = 1 << 1,
  kReadFile = 1 << 2,
  kReadDir = 1 << 3,
  kRemoveDir = 1 << 4,
  kRemoveFile = 1 << 5,
  kMakeChar = 1 << 6,
  kMakeDir = 1 << 7,
  kMakeReg = 1 << 8,
  kMakeSock = 1 << 9,
  kMakeFifo = 1 << 10,
  kMakeBlock = 1 << 11,
  kMakeSym = 1 << 12,
  kRefer = 1 << 13,     // version 2
  kTruncate = 1 << 14,  // version 3
};
constexpr uint64_t kRead = kReadFile | kReadDir;
constexpr uint64_t kWrite = kWriteFile | kRemoveDir | kRemoveFile | kMakeDir | kMakeReg;
constexpr uint64_t kNeverWanted =
    kExecute | kMakeChar | kMakeSock | kMakeFifo | kMakeBlock | kMakeSym;
constexpr uint64_t kTcp = 3;  // bind and connect, version 4

struct RulesetAttributes {
  uint64_t files = 0;
  uint64_t network = 0;
};

struct __attribute__((packed)) PathBeneath {
  uint64_t allowed = 0;
  int32_t folder = -1;
};

bool Allow(int ruleset, const fs::path& folder, uint64_t access) {
  const UniqueFd fd(::open(folder.c_str(), O_PATH | O_CLOEXEC));
  if (!fd) return true;
  const PathBeneath rule{access, fd.get()};
  return ::syscall(kAddRule, ruleset, kRulePathBeneath, &rule, 0) == 0;
}

}  // namespace

bool RestrictByLandlock(const std::vector<fs::path>& read, const std::vector<fs::path>& write) {
  const long version = ::syscall(kCreateRuleset, nullptr, 0, kAskForVersion);
  if (version < 1) return false;
  const uint64_t writes = kWrite | (version >= 3 ? uint64_t{kTruncate} : 0);
  RulesetAttributes handled;
  handled.files =
      writes | kNeverWanted | (version >= 2 ? uint64_t{kRefer} : 0) | (read.empty() ? 0 : kRead);
  handled.network = version >= 4 ? kTcp : 0;
  const size_t bytes = version >= 4 ? sizeof handled : sizeof handled.files;
  const UniqueFd ruleset(static_cast<int>(::syscall(kCreateRuleset, &handled, bytes, 0)));
  if (!ruleset) return false;
  for (const fs::path& folder : read) {
    if (!Allow(ruleset.get(), folder, kRead)) return false;
  }
  for (const fs::path& folder : write) {
    if (!Allow(ruleset.get(), folder, (writes | kRead) & handled.files)) return false;
  }
  return ::syscall(kRestrictSelf, ruleset.get(), 0) == 0;
}

}  // namespace evald
