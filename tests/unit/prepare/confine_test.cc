// Each test confines a process of its own, since a process never gets its rights back.
#include "orchestrator/prepare/confine.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>

#include "base/file.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

class ConfineTest : public ::testing::Test {
 protected:
  ConfineTest() {
    for (const char* sub : {"read", "write", "outside"}) {
      fs::create_directory(folder_ / sub);
      std::ofstream(folder_ / sub / "file") << sub;
    }
    confinement_.read = {folder_ / "read", folder_ / "absent"};
    confinement_.write = {folder_ / "write"};
  }

  static bool HasLandlock() { return ::syscall(444, nullptr, 0, 1) >= 1; }

  // Whether `holds` returns true in a confined process.
  bool Confined(const std::function<bool()>& holds) const {
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        Confine(confinement_);
        ::_exit(holds() ? 0 : 1);
      } catch (...) {
        ::_exit(2);
      }
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  bool Opens(const fs::path& path, int flags) const {
    return UniqueFd(::open(path.c_str(), flags, 0600)).get() >= 0;
  }

  TemporaryFolder folder_;
  Confinement confinement_;
};

TEST_F(ConfineTest, ReachesOnlyItsFolders) {
  if (!HasLandlock()) GTEST_SKIP() << "the kernel has no Landlock";
  EXPECT_TRUE(Confined([&] { return Opens(folder_ / "read" / "file", O_RDONLY); }));
  EXPECT_TRUE(Confined([&] { return !Opens(folder_ / "read" / "file", O_WRONLY); }));
  EXPECT_TRUE(Confined([&] { return !Opens(folder_ / "read" / "new", O_WRONLY | O_CREAT); }));
  EXPECT_TRUE(Confined([&] { return Opens(folder_ / "write" / "file", O_RDWR | O_TRUNC); }));
  EXPECT_TRUE(Confined([&] { return Opens(folder_ / "write" / "new", O_WRONLY | O_CREAT); }));
  EXPECT_TRUE(Confined([&] {
    return ::rename((folder_ / "write" / "new").c_str(), (folder_ / "write" / "other").c_str()) ==
           0;
  }));
  EXPECT_TRUE(Confined([&] { return !Opens(folder_ / "outside" / "file", O_RDONLY); }));
  EXPECT_TRUE(Confined([&] { return !Opens(folder_ / "outside" / "file", O_WRONLY); }));
  EXPECT_TRUE(Confined([&] {
    ::execl("/bin/true", "true", nullptr);  // would end with status 0 if it were allowed to run
    return errno == EACCES;
  }));
  confinement_.read.clear();  // everywhere
  EXPECT_TRUE(Confined([&] { return Opens(folder_ / "outside" / "file", O_RDONLY); }));
  EXPECT_TRUE(Confined([&] { return !Opens(folder_ / "outside" / "file", O_WRONLY); }));
}

TEST_F(ConfineTest, TakesNoMoreThanItsLimits) {
  confinement_.limits.memory_bytes = 64 << 20;
  confinement_.limits.disk_bytes = 1 << 20;
  if (LimitsMemory()) {
    EXPECT_TRUE(Confined([] { return std::malloc(size_t{128} << 20) == nullptr; }));
    EXPECT_TRUE(Confined([] { return std::malloc(size_t{16} << 20) != nullptr; }));
  }
  EXPECT_TRUE(Confined([&] {
    const UniqueFd file(::open((folder_ / "write" / "large").c_str(), O_WRONLY | O_CREAT, 0600));
    const std::string bytes(2 << 20, 'x');
    return ::write(file.get(), bytes.data(), bytes.size()) == 1 << 20 &&
           ::write(file.get(), "x", 1) < 0 && errno == EFBIG;
  }));
  EXPECT_TRUE(Confined([] {
    rlimit core{};
    return ::getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max == 0;
  }));
}

}  // namespace
}  // namespace evald
