#pragma once

#include <filesystem>
#include <vector>

namespace evald {

/// Forbids this process for good, and what it starts, by the kernel's Landlock (Linux 5.13 and
/// later): reading files outside of `read` and `write` (with an empty `read`: reading stays free),
/// writing outside of `write`, executing, and TCP where the kernel's version knows that. Folders
/// that are not there are left out. What is open stays open. Gives whether the kernel took it: it
/// may be too old, or built without. Needs PR_SET_NO_NEW_PRIVS.
///
/// Source of names and numbers: the kernel's Documentation/userspace-api/landlock.rst and
/// include/uapi/linux/landlock.h; written out here, since headers of a host may be older than its
/// kernel.
bool RestrictByLandlock(const std::vector<std::filesystem::path>& read,
                        const std::vector<std::filesystem::path>& write);

}  // namespace evald
