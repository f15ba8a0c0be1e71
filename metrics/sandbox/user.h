#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace evald::sandbox {

/// Uid (and gid) inside the sandbox, if two can be mapped.
inline constexpr uint32_t kProgramUid = 1000;

/// The ids of a sandbox's processes outside of it.
///
/// If evald is root, the zygote and its programs get two host ids of their own, which are not
/// root's: RLIMIT_NPROC holds for them (for root it does not). The ids are taken from a range
/// without accounts or, in a container that has only some ids, from the highest that it has. An
/// ordinary user can map only its own id; then both share it, and are kept apart by the pid
/// namespace and by the capabilities that programs lack.
struct SandboxUser {
  bool own_ids = false;     ///< whether two ids are mapped
  uint32_t zygote_id = 0;   ///< outside; inside it is 0
  uint32_t program_id = 0;  ///< outside; inside it is kProgramUid, or 0 without own ids
};

/// The ids of evald's own process.
struct OwnIdentity {
  uint32_t euid = 0;
  bool host_root = false;  ///< whether uid 0 here is the host's root
  std::string uid_map;     ///< /proc/self/uid_map
  std::string gid_map;     ///< /proc/self/gid_map
};

/// The ids of sandbox number `turn`. Throws Error(kInfrastructure) if only the host's root could be
/// mapped.
SandboxUser PickUser(const OwnIdentity& own, uint32_t turn);

/// Picks ids for one more sandbox of this process. Throws like PickUser. Any thread.
SandboxUser ChooseUser();

/// Writes uid_map, setgroups and gid_map of the new user namespace of `pid`. Throws
/// Error(kInfrastructure).
void WriteIdMaps(pid_t pid, const SandboxUser& user);

}  // namespace evald::sandbox
