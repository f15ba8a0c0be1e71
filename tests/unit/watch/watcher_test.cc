#include "orchestrator/watch/watcher.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "base/file.h"
#include "evald/error.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

const fs::path kExampleStep =
    fs::path(EVALD_SOURCE_DIR) / "examples/quickstart/checkpoints/step-00100";

class WatcherTest : public testing::Test {
 protected:
  WatcherTest() { fs::create_directories(folder_ / "checkpoints"); }

  WatchOptions Options() const {
    WatchOptions options;
    options.checkpoints = folder_ / "checkpoints";
    options.settle_s = 0;
    options.poll_s = 0.1;
    options.memory = folder_ / "memory.json";
    return options;
  }

  Watcher::Actions Actions() {
    return {
        [this](const FoundCheckpoint& checkpoint, const std::string& key) {
          if (!failure_.empty()) throw Error(ErrorKind::kInfrastructure, failure_);
          keys_.insert(key);
          submitted_.push_back(checkpoint.name);
          return checkpoint.name;
        },
        [this](const std::string& run) { return at_work_.count(run) == 0; },
        [this](const WatchNote& note) { told_.push_back(note.checkpoint + " " + note.decision); },
        [this](const std::string& why) { troubles_.push_back(why); }};
  }

  void Add(const std::string& name) { fs::copy(kExampleStep, folder_ / "checkpoints" / name); }

  TemporaryFolder folder_;
  std::string failure_;
  std::vector<std::string> submitted_;
  std::set<std::string> keys_;
  std::set<std::string> at_work_;
  std::vector<std::string> told_, troubles_;
};

using List = std::vector<std::string>;

TEST_F(WatcherTest, ADamagedMemoryIsNone) {
  Add("step-100");
  for (const char* damaged : {"", "x", "5", "{}", R"({"arrived": "1", "decided": []})",
                              R"({"arrived": 1, "decided": [5]})"}) {
    std::ofstream(folder_ / "memory.json") << damaged;
    Watcher watcher(Options(), Actions());
    watcher.Look();
  }
  EXPECT_EQ(submitted_, List(6, "step-100"));
  EXPECT_EQ(keys_.size(), 1u) << "another key would make another run";
}

TEST_F(WatcherTest, EachCheckpointOnceAlsoOverARestart) {
  Add("step-200");
  Add("step-100");
  {
    Watcher watcher(Options(), Actions());
    watcher.Look();
    watcher.Look();
    EXPECT_EQ(submitted_, (List{"step-100", "step-200"}));
  }
  Add("step-300");
  Watcher watcher(Options(), Actions());
  watcher.Look();
  EXPECT_EQ(submitted_, (List{"step-100", "step-200", "step-300"}));
  EXPECT_EQ(keys_.size(), 3u);
}

TEST_F(WatcherTest, ACheckpointThatIsBeingWrittenIsLeftAloneUntilItIsWhole) {
  const fs::path partial = folder_ / "checkpoints" / "step-1";
  fs::create_directories(partial);
  Watcher watcher(Options(), Actions());
  for (const char* file :
       {"config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"}) {
    fs::copy(kExampleStep / file, partial / file);
    watcher.Look();
  }
  const std::string weights = ReadFile(kExampleStep / "model.safetensors");
  for (const size_t bytes :
       {size_t{0}, size_t{7}, size_t{100}, weights.size() / 2, weights.size() - 1}) {
    std::ofstream(partial / "model.safetensors", std::ios::binary)
        .write(weights.data(), static_cast<std::streamsize>(bytes));
    watcher.Look();
    EXPECT_TRUE(submitted_.empty()) << bytes;
    EXPECT_FALSE(watcher.settled());
  }
  std::ofstream(partial / "model.safetensors", std::ios::binary) << weights;
  watcher.Look();
  EXPECT_EQ(submitted_, (List{"step-1"}));
}

TEST_F(WatcherTest, WithAMarkerItDecides) {
  WatchOptions options = Options();
  options.marker = "DONE";
  options.settle_s = 3600;
  Add("step-1");
  Watcher watcher(options, Actions());
  watcher.Look();
  EXPECT_TRUE(submitted_.empty());
  std::ofstream(folder_ / "checkpoints" / "step-1" / "DONE") << "";
  watcher.Look();
  EXPECT_EQ(submitted_, (List{"step-1"}));
}

TEST_F(WatcherTest, WithoutAMarkerItHasToComeToRest) {
  WatchOptions options = Options();
  options.settle_s = 3600;
  Add("step-1");
  Watcher watcher(options, Actions());
  watcher.Look();
  EXPECT_TRUE(submitted_.empty());
}

TEST_F(WatcherTest, AServiceThatIsAwayIsAskedAgainWithTheSameKey) {
  Add("step-1");
  Watcher watcher(Options(), Actions());
  failure_ = "connection refused";
  watcher.Look();
  EXPECT_FALSE(watcher.settled());
  failure_.clear();
  watcher.Look();
  watcher.Look();
  EXPECT_EQ(submitted_, (List{"step-1"}));
  EXPECT_TRUE(watcher.settled());
}

TEST_F(WatcherTest, NoticesWhatAppears) {
  WatchOptions options = Options();
  options.poll_s = 3600;  // only inotify can be in time
  std::atomic<int> count{0};
  Watcher::Actions actions = Actions();
  actions.submit = [&](const FoundCheckpoint& checkpoint, const std::string&) {
    ++count;
    return checkpoint.name;
  };
  Watcher watcher(options, actions);
  watcher.Start();
  fs::copy(kExampleStep, folder_ / "step-9");
  ::usleep(100'000);
  fs::rename(folder_ / "step-9", folder_ / "checkpoints" / "step-9");
  for (int i = 0; i < 6000 && count == 0; ++i) ::usleep(10'000);
  EXPECT_EQ(count, 1);
}

TEST_F(WatcherTest, AFolderThatIsNotThere) {
  WatchOptions options = Options();
  options.checkpoints = folder_ / "nowhere";
  EXPECT_THROW(Watcher(options, Actions()), Error);
}

TEST_F(WatcherTest, AFolderThatMayAppearLaterIsWaitedFor) {
  WatchOptions options = Options();
  options.checkpoints = folder_ / "later";
  options.may_be_missing = true;
  std::atomic<int> troubles{0}, count{0};
  Watcher::Actions actions = Actions();
  actions.trouble = [&](const std::string&) { ++troubles; };
  actions.submit = [&](const FoundCheckpoint& checkpoint, const std::string&) {
    ++count;
    return checkpoint.name;
  };
  Watcher watcher(options, actions);
  watcher.Start();
  for (int i = 0; i < 6000 && troubles == 0; ++i) ::usleep(10'000);
  EXPECT_EQ(troubles, 1);
  fs::create_directories(folder_ / "making");
  fs::copy(kExampleStep, folder_ / "making" / "step-1");
  fs::rename(folder_ / "making", folder_ / "later");
  for (int i = 0; i < 6000 && (count == 0 || troubles == 1); ++i) ::usleep(10'000);
  watcher.Stop();
  EXPECT_EQ(count, 1);
  EXPECT_EQ(troubles, 2);  // the second report: the folder exists now
}

TEST_F(WatcherTest, TheNewestWaitsForARunOfAnEarlierLife) {
  WatchOptions options = Options();
  options.which = WatchWhich::kNewest;
  at_work_ = {"step-1"};
  Add("step-1");
  Watcher(options, Actions()).Look();
  Add("step-2");
  Add("step-3");
  Watcher watcher(options, Actions());
  watcher.Look();
  EXPECT_EQ(submitted_, (List{"step-1"}));
  at_work_.clear();
  watcher.Look();
  EXPECT_EQ(submitted_, (List{"step-1", "step-3"}));
  EXPECT_EQ(told_, (List{"step-1 submitted", "step-2 passed-over", "step-3 submitted"}));
}

TEST_F(WatcherTest, TwoWatchesOfOneFolderSubmitUnderKeysOfTheirOwn) {
  Add("step-1");
  WatchOptions options = Options();
  options.scope = "one";
  Watcher(options, Actions()).Look();
  options.scope = "other";
  options.memory = folder_ / "other.json";
  Watcher(options, Actions()).Look();
  EXPECT_EQ(keys_.size(), 2u);
}

}  // namespace
}  // namespace evald
