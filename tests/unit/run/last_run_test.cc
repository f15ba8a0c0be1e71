// The links to the last run.
#include "orchestrator/run/last_run.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

class LastRun : public ::testing::Test {
 protected:
  fs::path Run(const std::string& name) {
    fs::create_directories(runs() / name);
    return runs() / name;
  }
  fs::path runs() const { return folder_.path() / "runs"; }

  TemporaryFolder folder_;
};

TEST_F(LastRun, BothLinksLeadToTheRun) {
  PointLastAt(Run("one"), "model/7b");
  EXPECT_EQ(fs::read_symlink(runs() / "last"), "one");
  EXPECT_EQ(fs::read_symlink(runs() / "last-model_7b"), "one");
}

TEST_F(LastRun, ALaterRunTakesItsLinks) {
  PointLastAt(Run("one"), "a");
  PointLastAt(Run("two") / "", "b");
  EXPECT_EQ(fs::read_symlink(runs() / "last"), "two");
  EXPECT_EQ(fs::read_symlink(runs() / "last-a"), "one");
  EXPECT_EQ(fs::read_symlink(runs() / "last-b"), "two");
  EXPECT_EQ(std::distance(fs::directory_iterator(runs()), fs::directory_iterator()), 5);
}

TEST_F(LastRun, AFolderOfThatNameStays) {
  folder_.Write("runs/last/results.json", "{}");
  PointLastAt(Run("one"), "a");
  EXPECT_TRUE(fs::exists(runs() / "last" / "results.json"));
  EXPECT_FALSE(fs::is_symlink(runs() / "last"));
  EXPECT_EQ(fs::read_symlink(runs() / "last-a"), "one");
}

TEST_F(LastRun, ALinkThatLeadsNowhereIsReplaced) {
  Run("one");
  fs::create_symlink("removed", runs() / "last");
  PointLastAt(runs() / "one", "a");
  EXPECT_EQ(fs::read_symlink(runs() / "last"), "one");
}

}  // namespace
}  // namespace evald
