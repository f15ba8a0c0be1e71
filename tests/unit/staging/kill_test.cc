#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "base/clock.h"
#include "orchestrator/staging/stager.h"
#include "staging_fixture.h"

namespace evald {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;

class KillTest : public testing::StagingTest {
 protected:
  KillTest() { testing::PutWhole(source_, testing::Bytes(24'000'000, 7)); }

  // Stages, keeps the lease for a moment and drops, again and again, until it is killed.
  [[noreturn]] void Churn() const {
    while (true) {
      StagedCheckpoint staged = Stager(Options()).Stage(source_);
      ::usleep(2'000);
      staged.Release();
    }
  }

  void ExpectCleanAfterOneMoreStart() {
    {
      const StagedCheckpoint staged = Stager(Options()).Stage(source_);
      EXPECT_EQ(ReadFile(staged.directory() / "model.safetensors"),
                ReadFile(source_ / "model.safetensors"));
      EXPECT_EQ(InRoot(), std::set<std::string>{staged.fingerprint()});
    }
    EXPECT_THAT(InRoot(), IsEmpty());
  }
};

TEST_F(KillTest, TheNextStartCleansUpWhateverTheMoment) {
  std::mt19937 random(20261121);
  int left_something = 0;
  for (int round = 0; round < 14; ++round) {
    // Two at once, so that a waiting process may be killed too, or take over.
    pid_t children[2];
    for (pid_t& child : children) {
      child = ::fork();
      if (child == 0) Churn();
    }
    while (InRoot().empty()) ::usleep(500);  // however long they take to begin
    for (const pid_t child : children) {
      ::usleep(random() % 60'000);
      ::kill(child, SIGKILL);
    }
    for (const pid_t child : children) ::waitpid(child, nullptr, 0);
    left_something += InRoot().empty() ? 0 : 1;
    ExpectCleanAfterOneMoreStart();
  }
  EXPECT_GT(left_something, 3) << "the moments were not random enough to test anything";
}

// A process is killed while it holds its lease. Its staged checkpoint is taken over as it is,
// without reading.
TEST_F(KillTest, AResumedRunFindsWhatTheKilledOneStaged) {
  const pid_t child = ::fork();
  if (child == 0) {
    const StagedCheckpoint staged = Stager(Options()).Stage(source_);
    testing::Put(temp_.path() / "ready", "");
    ::pause();
    ::_exit(0);
  }
  while (!fs::exists(temp_.path() / "ready")) ::usleep(1'000);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const StagedCheckpoint staged = Stager(Options()).Stage(source_);
  EXPECT_TRUE(staged.report().reused);
  EXPECT_EQ(staged.report().bytes_read, 0u);
}

// The waiting process takes over from one that was killed during its staging.
TEST_F(KillTest, AWaitingProcessTakesOver) {
  const pid_t child = ::fork();
  if (child == 0) {
    CopyHooks hooks;
    hooks.progress = [&](uint64_t, uint64_t) {
      testing::Put(temp_.path() / "ready", "");
      ::pause();
    };
    Stager(Options()).Stage(source_, hooks);
    ::_exit(0);
  }
  while (!fs::exists(temp_.path() / "ready")) ::usleep(1'000);
  bool killed = false;
  CopyHooks hooks;
  hooks.progress = [&](uint64_t, uint64_t) {
    if (!killed) ::kill(child, SIGKILL);
    killed = true;
  };
  const StagedCheckpoint staged = Stager(Options()).Stage(source_, hooks);
  EXPECT_TRUE(killed);
  EXPECT_TRUE(staged.report().waited);
  EXPECT_EQ(staged.report().bytes_read, staged.report().bytes);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace evald
