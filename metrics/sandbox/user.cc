#include "metrics/sandbox/user.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/file.h"
#include "evald/error.h"

namespace evald::sandbox {
namespace {

// Above the ids of accounts, subordinate ids and systemd's containers (which end at 0x6fffffff:
// systemd's UIDS-GIDS.md), and below 2^31, since some tools take larger ones for negative.
constexpr uint32_t kFirstId = 0x70000000;
constexpr uint32_t kIdPairs = 0x07ffffff;

// In a container with fewer ids: this many of its highest, but not 65520 to 65535, some of which
// mean "nobody" and "none".
constexpr uint32_t kContainerIds = 4096;
constexpr uint32_t kSpecialIds = 65520;
constexpr uint32_t kSpecialIdsEnd = 65536;

/// Ids of this user namespace.
struct IdRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// The ids that exist here (user_namespaces(7), "uid_map"), without 0 and without the host's 0.
std::vector<IdRange> UsableIds(const std::string& map) {
  std::istringstream lines(map);
  std::vector<IdRange> ranges;
  uint64_t inside = 0;
  uint64_t outside = 0;
  uint64_t count = 0;
  while (lines >> inside >> outside >> count) {
    const uint64_t begin = inside == 0 || outside == 0 ? inside + 1 : inside;
    if (begin < inside + count) ranges.push_back({begin, inside + count});
  }
  return ranges;
}

/// A range from which pairs of ids may be taken: within one range of users and one of groups. Empty
/// if there is none.
IdRange PairPlace(const OwnIdentity& own) {
  IdRange best;
  for (const IdRange& users : UsableIds(own.uid_map)) {
    for (const IdRange& groups : UsableIds(own.gid_map)) {
      IdRange both = {std::max(users.begin, groups.begin), std::min(users.end, groups.end)};
      if (both.begin <= kFirstId && both.end >= kFirstId + 2ull * kIdPairs) {
        return {kFirstId, kFirstId + 2ull * kIdPairs};
      }
      if (both.end > kSpecialIds && both.end <= kSpecialIdsEnd) both.end = kSpecialIds;
      if (both.end < both.begin + 2 || both.end <= best.end) continue;
      best = {both.end - std::min<uint64_t>(both.end - both.begin, kContainerIds), both.end};
    }
  }
  return best;
}

std::string ReadAll(const char* path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// Whether uid 0 here is the host's root. The kernel's files in /proc belong to the host's root; if
/// their owner is unmapped here, uid 0 is another user.
bool IsHostRoot() {
  struct stat info = {};
  return stat("/proc/sys/kernel", &info) != 0 || info.st_uid == 0;
}

void WriteProcFile(const std::string& path, const std::string& text) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file) ThrowErrno(path, "opening", errno);
  if (write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    ThrowErrno(path, "writing '" + text + "' to", errno);
  }
}

std::string MapText(uint32_t zygote_id, uint32_t program_id, bool own_ids) {
  std::string text = "0 " + std::to_string(zygote_id) + " 1\n";
  if (own_ids) text += std::to_string(kProgramUid) + " " + std::to_string(program_id) + " 1\n";
  return text;
}

}  // namespace

SandboxUser PickUser(const OwnIdentity& own, uint32_t turn) {
  SandboxUser user;
  if (own.euid != 0) return user;
  const IdRange place = PairPlace(own);
  const uint64_t pairs = (place.end - place.begin) / 2;
  if (pairs == 0) {
    if (!own.host_root) return user;
    throw Error(ErrorKind::kInfrastructure,
                "the sandbox has no user to run programs as: of the host's ids only root's is "
                "mapped here (/proc/self/uid_map, gid_map), and limits do not hold for root",
                "run as an ordinary user, map more ids into this container, or run code without "
                "isolation, knowingly, with metrics.sandbox.unsafe: true");
  }
  user.own_ids = true;
  user.zygote_id = static_cast<uint32_t>(place.begin + 2 * (turn % pairs));
  user.program_id = user.zygote_id + 1;
  return user;
}

SandboxUser ChooseUser() {
  static std::atomic<uint32_t> count{0};
  const OwnIdentity own = {geteuid(), IsHostRoot(), ReadAll("/proc/self/uid_map"),
                           ReadAll("/proc/self/gid_map")};
  return PickUser(own, static_cast<uint32_t>(getpid()) * 32u + count++ % 32u);
}

void WriteIdMaps(pid_t pid, const SandboxUser& user) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const uint32_t uid = user.own_ids ? user.zygote_id : geteuid();
  const uint32_t gid = user.own_ids ? user.zygote_id : getegid();
  // Required for a user who may not map groups freely (user_namespaces(7)).
  if (!user.own_ids) WriteProcFile(folder + "/setgroups", "deny");
  WriteProcFile(folder + "/uid_map", MapText(uid, user.program_id, user.own_ids));
  WriteProcFile(folder + "/gid_map", MapText(gid, user.program_id, user.own_ids));
}

}  // namespace evald::sandbox
