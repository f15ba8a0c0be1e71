#pragma once

#include <sys/types.h>

namespace evald::protocol {

/// Asks the kernel to send `signal` to this process when its parent ends, then checks that the
/// parent is still `parent` (it may have ended in between): if not, ends this process at once.
/// "Parent" is the thread that forked: start processes from one that lives as long as the process.
/// `parent` is what the parent says of itself (getpid()); 0 leaves the check at "not yet handed to
/// the reaper of orphans as far as can be told", that is, getppid() did not change meanwhile.
void DieWithParent(int signal, pid_t parent = 0);

}  // namespace evald::protocol
