#include "metrics/sandbox/user.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>

#include "base/file.h"
#include "evald/error.h"

namespace evald::sandbox {
namespace {

// Above what accounts, subordinate ids and systemd's containers use (their ranges end at
// 0x6fffffff: systemd's UIDS-GIDS.md), below 2^31, which some tools still take for negative.
constexpr uint32_t kFirstId = 0x70000000;
constexpr uint32_t kIdPairs = 0x07ffffff;

/// Whether all host ids exist in this user namespace: not so in a container that remaps them.
bool AllIdsMapped(const char* path) {
  std::ifstream map(path);
  uint64_t inside = 1;
  uint64_t outside = 0;
  uint64_t count = 0;
  return (map >> inside >> outside >> count) && inside == 0 && count > kFirstId + 2ull * kIdPairs;
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

SandboxUser ChooseUser() {
  SandboxUser user;
  user.own_ids =
      geteuid() == 0 && AllIdsMapped("/proc/self/uid_map") && AllIdsMapped("/proc/self/gid_map");
  if (!user.own_ids) return user;
  static std::atomic<uint32_t> count{0};
  const uint32_t pair = (static_cast<uint32_t>(getpid()) * 32u + count++ % 32u) % kIdPairs;
  user.zygote_id = kFirstId + 2 * pair;
  user.program_id = user.zygote_id + 1;
  return user;
}

void WriteIdMaps(pid_t pid, const SandboxUser& user) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const uint32_t uid = user.own_ids ? user.zygote_id : geteuid();
  const uint32_t gid = user.own_ids ? user.zygote_id : getegid();
  // Required for whoever may not map groups freely (user_namespaces(7)).
  if (!user.own_ids) WriteProcFile(folder + "/setgroups", "deny");
  WriteProcFile(folder + "/uid_map", MapText(uid, user.program_id, user.own_ids));
  WriteProcFile(folder + "/gid_map", MapText(gid, user.program_id, user.own_ids));
}

}  // namespace evald::sandbox
