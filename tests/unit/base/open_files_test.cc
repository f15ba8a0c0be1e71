// The limit of open files is raised, or an error says that it is too low.
#include "base/open_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

#include "evald/error.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

using ::testing::HasSubstr;

class OpenFiles : public ::testing::Test {
 protected:
  OpenFiles() { ::getrlimit(RLIMIT_NOFILE, &before_); }
  ~OpenFiles() override { ::setrlimit(RLIMIT_NOFILE, &before_); }
  static rlim_t Now() {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
  }
  rlimit before_{};
};

TEST_F(OpenFiles, TheSoftLimitIsRaised) {
  if (before_.rlim_max < 256) GTEST_SKIP() << "the hard limit is too low";
  const rlimit low{64, before_.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  const uint64_t limit = RaiseOpenFiles(256);
  EXPECT_EQ(limit, std::min<uint64_t>(before_.rlim_max, 65'536));
  EXPECT_EQ(Now(), limit);
}

TEST_F(OpenFiles, ALimitThatIsTooLowIsSaidWithWhatIsNeeded) {
  const Error e = Caught([&] { RaiseOpenFiles(uint64_t{1} << 40); });
  EXPECT_EQ(e.kind(), ErrorKind::kUsage);
  EXPECT_THAT(e.message(), HasSubstr("and 1099511627776 are needed"));
  EXPECT_THAT(e.remedy(), HasSubstr("LimitNOFILE=1099511627776"));
}

}  // namespace
}  // namespace evald
