#pragma once

#include <sys/types.h>

namespace evald::protocol {

/// Asks the kernel to send `signal` to this process when its parent ends. Then checks that the
/// parent is still `parent`, since it may have ended in between; if not, ends this process at once.
/// "Parent" is the thread that forked: start processes on a thread that lives as long as its
/// process. `parent` is the parent's own getpid(). With 0, the check is only that getppid() did not
/// change meanwhile.
void DieWithParent(int signal, pid_t parent = 0);

}  // namespace evald::protocol
