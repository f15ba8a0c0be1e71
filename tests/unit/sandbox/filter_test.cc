// The filter by itself: system calls that Python code cannot make, so no program can show what the
// filter does with them.

#include "metrics/sandbox/filter.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "tests/unit/sandbox/fixtures.h"

namespace evald::sandbox_test {
namespace {

/// Runs `body` in a process with the filter.
int Filtered(bool allow_machine_code, const std::function<int()>& body) {
  const std::vector<sock_filter> rules = sandbox::BuildFilter({false, allow_machine_code});
  return InChild([&] {
    const sock_fprog program = {static_cast<unsigned short>(rules.size()),
                                const_cast<sock_filter*>(rules.data())};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 100;
    if (syscall(SYS_seccomp, 1 /* SECCOMP_SET_MODE_FILTER */, 0, &program) != 0) return 101;
    return body();
  });
}

/// A page of this program's machine code. The test tries to change its protection.
void* OwnCode() {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(&OwnCode) & ~uintptr_t{4095});
}

int ErrorOf(long result) { return result == -1 ? errno : 0; }

TEST(Filter, MemoryOnceWritableNeverBecomesExecutable) {
  EXPECT_EQ(
      Filtered(
          false,
          [] {
            void* const page =
                mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (page == MAP_FAILED) return 1;
            if (mprotect(page, 4096, PROT_READ) != 0) return 2;
            for (const int protection :
                 {PROT_EXEC, PROT_READ | PROT_EXEC, PROT_READ | PROT_WRITE | PROT_EXEC}) {
              if (ErrorOf(mprotect(page, 4096, protection)) != EACCES) return 3;
              if (ErrorOf(syscall(SYS_pkey_mprotect, page, 4096, protection, -1)) != EPERM)
                return 4;
            }
            if (ErrorOf(mprotect(OwnCode(), 4096, PROT_READ | PROT_WRITE | PROT_EXEC)) != EACCES)
              return 5;
            if (ErrorOf(personality(READ_IMPLIES_EXEC)) != EPERM) return 6;
            if (ErrorOf(syscall(SYS_shmat, 0, nullptr, 0100000 /* SHM_EXEC */)) != EPERM) return 7;
            if (ErrorOf(syscall(SYS_memfd_create, "x", 0)) != EPERM) return 8;
            return 0;
          }),
      0);
}

TEST(Filter, MachineCodeMayBeWrittenWhereThatIsAskedFor) {
  EXPECT_EQ(Filtered(true,
                     [] {
                       void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                       if (page == MAP_FAILED) return 1;
                       return mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0 ? 0 : 2;
                     }),
            0);
}

/// msync cannot tell a hole from a mapping, nor write out a file of the host.
TEST(Filter, FlushesSucceedAndDoNothing) {
  EXPECT_EQ(Filtered(false,
                     [] {
                       const int closed = 200;
                       close(closed);
                       if (msync(reinterpret_cast<void*>(4096), 4096, MS_SYNC) != 0) return 1;
                       if (fsync(closed) != 0 || fdatasync(closed) != 0 || syncfs(closed) != 0)
                         return 2;
                       if (posix_fadvise(closed, 0, 0, POSIX_FADV_DONTNEED) != 0) return 3;
                       return 0;
                     }),
            0);
}

}  // namespace
}  // namespace evald::sandbox_test
