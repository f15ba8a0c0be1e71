#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "metrics/sandbox/interpreter.h"

namespace evald::sandbox {

/// The guest library's path inside the sandbox.
inline constexpr const char* kGuestPath = "/evald/guest.so";

/// The content of the sandbox's root file system. It is planned before the process is cloned, since
/// the clone of a process with threads may not allocate memory.
struct RootPlan {
  struct Bind {
    std::string path;  ///< the same outside and inside, real and absolute
    bool folder = true;
    bool device = false;
    int tree = -1;  ///< the detached copy, while it is being moved
  };
  std::vector<std::string> folders;                        ///< folders to make, parents first
  std::vector<Bind> binds;                                 ///< read-only
  std::vector<std::pair<std::string, std::string>> links;  ///< path, target
  std::string_view guest_library;
  uint64_t tmp_bytes = 0;     ///< size of a tmpfs on /tmp; 0: /tmp is a folder of the root
  uint32_t tmp_owner = 0;     ///< inside the user namespace
  bool tmp_executes = false;  ///< whether programs in /tmp can be executed
  /// Whether /proc shows the sandbox's own processes, and /dev/stdin and the like lead there. A
  /// host whose /proc is partly covered, as in most containers, does not allow it, and /proc stays
  /// empty
  bool proc = false;
};

/// Everything that `interpreter` needs, a few devices, an empty /tmp, and nothing else.
RootPlan PlanRoot(const Interpreter& interpreter);

/// What compilers and interpreters of Debian's packages need: /usr without /usr/local and /usr/src,
/// what is configured for them below /etc, and `interpreter`; the devices, and /tmp.
RootPlan PlanToolRoot(const Interpreter& interpreter);

/// The steps that build the root, each in the cloned process, in this order. Each returns nullptr,
/// or the name of the failed step with errno set. None allocates memory.
/// 1. Makes detached read-only copies of the binds, while host files are still accessible.
const char* CopyTrees(RootPlan& plan);
/// 2. Mounts a tmpfs, which becomes the current directory. It belongs to the namespace's root, but
/// is mounted before the process becomes that user: that user may have no access to the host's "/",
/// and so no path to the mount.
const char* MountRoot();
/// 3. Makes folders, links, binds and the guest library in it, as the namespace's root.
const char* BuildRoot(RootPlan& plan);
/// 4. Makes it the root, read-only, and unmounts the host's.
const char* EnterRoot();

}  // namespace evald::sandbox
