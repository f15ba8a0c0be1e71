#include "base/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace evald {

UniqueFd MemoryFile(std::string_view content) {
  UniqueFd fd(::memfd_create("evald", MFD_CLOEXEC));
  if (!fd) ThrowErrno("a file in memory", "create", errno);
  while (!content.empty()) {
    const ssize_t wrote = ::write(fd.get(), content.data(), content.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) ThrowErrno("a file in memory", "write", errno);
    content.remove_prefix(static_cast<size_t>(wrote));
  }
  if (::lseek(fd.get(), 0, SEEK_SET) != 0) ThrowErrno("a file in memory", "seek", errno);
  return fd;
}

}  // namespace evald
