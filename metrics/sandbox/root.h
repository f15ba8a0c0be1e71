#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "metrics/sandbox/interpreter.h"

namespace evald::sandbox {

/// Where the guest library lies inside.
inline constexpr const char* kGuestPath = "/evald/guest.so";

/// What the sandbox's root file system holds: decided before the process is cloned, since the clone
/// of a process with threads may not allocate memory.
struct RootPlan {
  struct Bind {
    std::string path;  ///< the same outside and inside, real and absolute
    bool folder = true;
    bool device = false;
    int tree = -1;  ///< the detached copy, while it is being moved
  };
  std::vector<std::string> folders;                        ///< to be made, parents first
  std::vector<Bind> binds;                                 ///< read-only
  std::vector<std::pair<std::string, std::string>> links;  ///< path, target
  std::string_view guest_library;
};

/// Everything `interpreter` needs, a few devices, an empty /tmp, and nothing else.
RootPlan PlanRoot(const Interpreter& interpreter);

/// The steps that build it, each in the cloned process, in this order. Each returns nullptr or the
/// name of what failed, with errno set; none allocates memory.
/// 1. Detached read-only copies of the binds, while host files are still accessible.
const char* CopyTrees(RootPlan& plan);
/// 2. A tmpfs, which becomes the current directory. It belongs to the namespace's root, but is
/// mounted before that user is taken: who may then not even pass the host's "/" has no path to it.
const char* MountRoot();
/// 3. The folders, links, binds and the guest library in it. As the namespace's root.
const char* BuildRoot(RootPlan& plan);
/// 4. Makes it the root, lets go of the host's, read-only.
const char* EnterRoot();

}  // namespace evald::sandbox
