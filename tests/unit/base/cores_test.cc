// How many processors a process may use.
#include "base/cores.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

class CoresTest : public testing::Test {
 protected:
  void Put(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((folder_ / file).parent_path());
    std::ofstream(folder_ / file) << text;
  }

  TemporaryFolder folder_;
};

TEST_F(CoresTest, NoGroupBoundsNothing) {
  EXPECT_EQ(QuotaCores("", folder_.path()), 0);
  EXPECT_EQ(QuotaCores("0::/a/b\n", folder_.path()), 0);
  EXPECT_EQ(QuotaCores("nonsense\n1:\n", folder_.path()), 0);
}

TEST_F(CoresTest, TheSmallestQuotaAboveAGroupHolds) {
  Put("job/cpu.max", "250000 100000\n");
  Put("job/step/cpu.max", "max 100000\n");
  EXPECT_DOUBLE_EQ(QuotaCores("0::/job/step\n", folder_.path()), 2.5);
  Put("cpu.max", "150000 100000\n");
  EXPECT_DOUBLE_EQ(QuotaCores("0::/job/step\n", folder_.path()), 1.5);
}

TEST_F(CoresTest, VersionOneHasItsOwnFiles) {
  Put("cpu,cpuacct/pod/cpu.cfs_quota_us", "400000\n");
  Put("cpu,cpuacct/pod/cpu.cfs_period_us", "100000\n");
  Put("cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  Put("cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(QuotaCores("9:memory:/pod\n4:cpu,cpuacct:/pod\n0::/\n", folder_.path()), 4);
}

TEST_F(CoresTest, SlurmSaysHowManyAreTheJobs) {
  ::setenv("SLURM_CPUS_ON_NODE", "1", 1);
  const int outside = UsableCores();  // a shell of salloc on a login node
  ::setenv("SLURMD_NODENAME", "n1", 1);
  EXPECT_EQ(UsableCores(), 1);
  ::unsetenv("SLURMD_NODENAME");
  ::unsetenv("SLURM_CPUS_ON_NODE");
  EXPECT_EQ(UsableCores(), outside);
  EXPECT_GE(outside, 1);
}

}  // namespace
}  // namespace evald
