#include "orchestrator/run/run_json.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <future>

#include "base/file.h"
#include "orchestrator/config/eval_config.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

class RunJsonTest : public testing::Test {
 protected:
  RunJsonTest() {
    config_.output_dir = folder_.path();
    config_.run_name = "r";
    json_.emplace(RunDirectory::Create(config_), &files_);
  }

  Json OnDisk() const { return RunDirectory::ReadRecord(folder_ / "r").value(); }

  // The `files` thread waits until `go`.
  void Hold(std::promise<void>* go) {
    files_.Post([go] { go->get_future().wait(); });
  }

  TemporaryFolder folder_;
  EvalConfig config_;
  Loop loop_;
  WorkThread files_{"files", &loop_, WorkThread::AtEnd::kFinish};
  std::optional<RunJson> json_;
};

TEST_F(RunJsonTest, TellsOfEachChangeOnceItIsOnDiskInTheirOrder) {
  std::vector<int> told;
  for (int i = 0; i < 10; ++i) {
    json_->Update({{"n", i}}, [&, i](const std::optional<Error>& error) {
      EXPECT_FALSE(error);
      EXPECT_GE(OnDisk()["n"].get<int>(), i);
      told.push_back(i);
      if (i == 9) loop_.Stop();
    });
    EXPECT_EQ(json_->record()["n"], i) << "in memory at once";
  }
  EXPECT_TRUE(told.empty());
  loop_.Run();
  EXPECT_EQ(told, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(OnDisk()["n"], 9);
}

TEST_F(RunJsonTest, WritesOnceWhatPilesUp) {
  std::promise<void> go;
  Hold(&go);
  int told = 0;
  for (int i = 0; i < 10; ++i)
    json_->Update({{"n", i}}, [&](const std::optional<Error>&) { ++told; });
  bool written = false;
  files_.Post([&] { written = OnDisk().value("n", -1) == 9; },
              [&](const std::optional<Error>&) { loop_.Stop(); });
  go.set_value();
  loop_.Run();
  EXPECT_TRUE(written) << "what is posted after a change comes after its write";
  EXPECT_EQ(told, 10);
}

TEST_F(RunJsonTest, WaitsForWhatIsNotOnDisk) {
  bool at_once = false;
  json_->WhenWritten([&] { at_once = true; });
  EXPECT_TRUE(at_once);
  std::promise<void> go;
  Hold(&go);
  json_->Update({{"device", "d"}});
  bool early = true;
  json_->WhenWritten([&] {
    EXPECT_FALSE(early);
    EXPECT_EQ(OnDisk()["device"], "d");
    loop_.Stop();
  });
  early = false;
  go.set_value();
  loop_.Run();
}

TEST_F(RunJsonTest, TellsWhyAChangeIsNotOnDiskAndWritesTheNextOne) {
  const fs::path away = folder_ / "away";
  fs::rename(folder_ / "r", away);
  json_->Update({{"n", 1}}, [&](const std::optional<Error>& error) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->kind(), ErrorKind::kInfrastructure);
    EXPECT_NE(std::string(error->what()).find("run.json"), std::string::npos);
    fs::rename(away, folder_ / "r");
    json_->Update({{"m", 2}}, [&](const std::optional<Error>& later) {
      EXPECT_FALSE(later);
      loop_.Stop();
    });
  });
  loop_.Run();
  EXPECT_EQ(OnDisk()["n"], 1);
  EXPECT_EQ(OnDisk()["m"], 2);
}

TEST_F(RunJsonTest, IsOutlivedByItsWrites) {
  std::promise<void> go;
  Hold(&go);
  json_->Update({{"n", 1}}, [&](const std::optional<Error>&) { loop_.Stop(); });
  json_.reset();
  // the lock was released with json_
  const RunDirectory next = RunDirectory::Resume(config_, "r");
  go.set_value();
  loop_.Run();
  EXPECT_EQ(OnDisk()["n"], 1);
}

TEST(TaskFoldersTest, AreMadeForEachTaskAndMayBeThere) {
  const TemporaryFolder folder;
  const fs::path& run = folder.path();
  for (int twice = 0; twice < 2; ++twice) {
    MakeTaskFolders(run, {"a", "b/c", "../d"});
    for (const char* folder : {"generations/a", "generations/b%2Fc", "generations/%2E.%2Fd",
                               "scores/a", "scores/b%2Fc"}) {
      EXPECT_TRUE(fs::is_directory(run / folder)) << folder;
    }
  }
  WriteFileAtomic(run / "scores" / "e", "");
  EXPECT_THROW(MakeTaskFolders(run, {"e"}), Error) << "a file is in the way";
}

}  // namespace
}  // namespace evald
