#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace evald::sandbox {

/// Uid (and gid) inside the sandbox, where two can be mapped.
inline constexpr uint32_t kProgramUid = 1000;

/// Who a sandbox's processes are outside of it.
///
/// As root, the zygote and its programs get two host ids each of their own: no account has them,
/// so RLIMIT_NPROC holds (for root it does not) and sandboxes do not count each other's processes.
/// An ordinary user can map only the own id; then both share it, and what keeps them apart is the
/// pid namespace and the capabilities that programs lack.
struct SandboxUser {
  bool own_ids = false;     ///< whether two ids are mapped
  uint32_t zygote_id = 0;   ///< outside; inside it is 0
  uint32_t program_id = 0;  ///< outside; inside it is kProgramUid, or 0 without own ids
};

/// Picks ids for one more sandbox of this process. Any thread.
SandboxUser ChooseUser();

/// Writes uid_map, setgroups and gid_map of the new user namespace of `pid`. Throws
/// Error(kInfrastructure).
void WriteIdMaps(pid_t pid, const SandboxUser& user);

}  // namespace evald::sandbox
