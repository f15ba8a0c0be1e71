#include "orchestrator/run/run_directory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "orchestrator/config/eval_config.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

class RemovedRun : public testing::Test {
 protected:
  RemovedRun() {
    EvalConfig config;
    config.output_dir = folder_.path();
    config.run_name = "r";
    run_.emplace(RunDirectory::Create(config));
    folder_.Write("r/generations/t/half.jsonl", "{}\n");
  }

  TemporaryFolder folder_;
  std::optional<RunDirectory> run_;
};

TEST_F(RemovedRun, IsGoneWithItsFiles) {
  const std::string id = run_->id();
  run_.reset();
  folder_.Write("r/generations/t/half.jsonl", "");
  folder_.Write("r/logs/w0.log", "text\n");
  EXPECT_TRUE(RunDirectory::Remove(folder_ / "r", id));
  EXPECT_FALSE(fs::exists(folder_ / "r"));
  EXPECT_TRUE(RunDirectory::Remove(folder_ / "r", id)) << "a repeated removal finds nothing";
}

TEST_F(RemovedRun, StaysWhileAProcessIsAtWorkOnIt) {
  EXPECT_FALSE(RunDirectory::Remove(folder_ / "r", run_->id()));
  EXPECT_TRUE(fs::exists(folder_ / "r/generations/t/half.jsonl"));
}

TEST_F(RemovedRun, StaysIfWorkersHaveWrittenAnswers) {
  const std::string id = run_->id();
  run_.reset();
  EXPECT_FALSE(RunDirectory::Remove(folder_ / "r", id));
  EXPECT_TRUE(fs::exists(folder_ / "r/generations/t/half.jsonl"));
  EXPECT_TRUE(fs::exists(folder_ / "r/run.json"));
}

TEST_F(RemovedRun, IsNotAnotherRunInTheSameFolder) {
  run_.reset();
  EXPECT_TRUE(RunDirectory::Remove(folder_ / "r", "another"));
  EXPECT_TRUE(fs::exists(folder_ / "r/generations/t/half.jsonl"));
}

}  // namespace
}  // namespace evald
