#include "protocol/parent_death.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"

namespace evald::protocol {

void DieWithParent(int signal, pid_t parent) {
  const pid_t expected = parent == 0 ? ::getppid() : parent;
  if (::prctl(PR_SET_PDEATHSIG, signal) != 0)
    ThrowErrno("process", "prctl(PR_SET_PDEATHSIG)", errno);
  if (::getppid() != expected) ::_exit(1);
}

}  // namespace evald::protocol
