#pragma once

#include <filesystem>
#include <vector>

namespace evald {

/// Restricts this process and its children for good, by the kernel's Landlock (Linux 5.13 and
/// later). It forbids reading files outside of `read` and `write` (an empty `read` leaves reading
/// free), writing outside of `write`, executing, and TCP if the kernel's version knows that.
/// Folders that do not exist are left out. Open files stay open. Returns false if the kernel has no
/// Landlock. Needs PR_SET_NO_NEW_PRIVS.
///
/// Names and numbers come from the kernel's Documentation/userspace-api/landlock.rst and
/// include/uapi/linux/landlock.h. They are written out here, since a host's headers may be older
/// than its kernel.
bool RestrictByLandlock(const std::vector<std::filesystem::path>& read,
                        const std::vector<std::filesystem::path>& write);

}  // namespace evald
