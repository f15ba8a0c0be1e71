#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace evald::sandbox {

/// Uid (and gid) inside the sandbox, where two can be mapped.
inline constexpr uint32_t kProgramUid = 1000;

/// Who a sandbox's processes are outside of it.
///
/// As root, the zygote and its programs get two host ids each of their own, which are not root's:
/// RLIMIT_NPROC holds for them (for root it does not). They are taken from where no account is, or,
/// in a container that has only part of the ids, from the top of what it has. An ordinary user can
/// map only the own id; then both share it, and what keeps them apart is the pid namespace and the
/// capabilities that programs lack.
struct SandboxUser {
  bool own_ids = false;     ///< whether two ids are mapped
  uint32_t zygote_id = 0;   ///< outside; inside it is 0
  uint32_t program_id = 0;  ///< outside; inside it is kProgramUid, or 0 without own ids
};

/// Who evald itself is.
struct OwnIdentity {
  uint32_t euid = 0;
  bool host_root = false;  ///< whether uid 0 here is the host's root
  std::string uid_map;     ///< /proc/self/uid_map
  std::string gid_map;     ///< /proc/self/gid_map
};

/// The ids of sandbox number `turn`. Throws Error(kInfrastructure) where only the host's root is
/// there to be mapped.
SandboxUser PickUser(const OwnIdentity& own, uint32_t turn);

/// Picks ids for one more sandbox of this process; throws as PickUser. Any thread.
SandboxUser ChooseUser();

/// Writes uid_map, setgroups and gid_map of the new user namespace of `pid`. Throws
/// Error(kInfrastructure).
void WriteIdMaps(pid_t pid, const SandboxUser& user);

}  // namespace evald::sandbox
