// The files that a scan opens: a checkpoint that does not change is not read again.
#include "orchestrator/watch/checkpoint_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/file.h"
#include "evald/json.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

const fs::path kExample = fs::path(EVALD_SOURCE_DIR) / "examples/quickstart/checkpoints/step-00100";
constexpr const char* kIndex = "model.safetensors.index.json";

class CheckpointScanTest : public testing::Test {
 protected:
  CheckpointScanTest() : reads_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    fs::copy(kExample, checkpoint());
  }

  fs::path checkpoint() const { return folder_ / "step-1"; }
  // Writes the weights into `shard`, and an index that names only that file.
  void Shard(const std::string& shard) {
    weights_ = ReadFile(checkpoint() / "model.safetensors");
    fs::remove(checkpoint() / "model.safetensors");
    const uint64_t length = *reinterpret_cast<const uint64_t*>(weights_.data());
    const Json header = Json::parse(weights_.substr(8, length));
    Json map = Json::object();
    for (const auto& [tensor, about] : header.items()) {
      if (tensor != "__metadata__") map[tensor] = shard;
    }
    std::ofstream(checkpoint() / kIndex) << Json{{"weight_map", map}}.dump();
    fs::create_directories((checkpoint() / shard).parent_path());
  }
  void Write(const std::string& name, size_t bytes) {
    std::ofstream(checkpoint() / name, std::ios::binary)
        .write(weights_.data(), static_cast<std::streamsize>(bytes));
  }
  // Counts reads of a file from now on.
  void CountReads(const std::string& name) {
    ASSERT_GE(::inotify_add_watch(reads_.get(), (checkpoint() / name).c_str(), IN_OPEN | IN_ACCESS),
              0);
  }
  // Whether a counted file was opened or read since the last call.
  bool WasRead() const {
    char events[4096];
    bool read = false;
    while (::read(reads_.get(), events, sizeof events) > 0) read = true;
    return read;
  }

  TemporaryFolder folder_;
  UniqueFd reads_;
  std::string weights_;
};

TEST_F(CheckpointScanTest, AFolderWhoseNameIsNotUtf8IsPassedOver) {
  fs::copy(kExample, folder_ /
                         "step-\xff"
                         "2");
  CheckpointScan scan(folder_.path(), "", 0);
  for (const double now : {1.0, 2.0}) {
    const std::vector<FoundCheckpoint> found = scan.Scan(now);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].name, "step-1");
  }
}

TEST_F(CheckpointScanTest, AFolderWithTooManyEntriesIsRefused) {
  for (int i = 0; i < 20'000; ++i) std::ofstream(folder_ / std::to_string(i));
  CheckpointScan scan(folder_.path(), "", 0);
  EXPECT_THAT(RefusalOf([&] { scan.Scan(1); }), testing::HasSubstr("holds more than 20000 files"));
}

TEST_F(CheckpointScanTest, AnIncompleteCheckpointIsReadOnceUntilItChanges) {
  Shard("shard.safetensors");
  Write("shard.safetensors", weights_.size() / 2);
  CountReads(kIndex);
  CountReads("shard.safetensors");
  CheckpointScan scan(folder_.path(), "", 0);
  EXPECT_TRUE(scan.Scan(1).empty());
  EXPECT_TRUE(WasRead()) << "this test sees nothing";
  for (const double now : {2.0, 3.0, 4.0}) EXPECT_TRUE(scan.Scan(now).empty());
  EXPECT_FALSE(WasRead());
  EXPECT_TRUE(scan.unsettled());
  EXPECT_FALSE(scan.settling());
  Write("shard.safetensors", weights_.size());
  EXPECT_EQ(scan.Scan(5).size(), 1u);
  EXPECT_TRUE(WasRead());
  EXPECT_EQ(scan.Scan(6).size(), 1u);  // a whole checkpoint is not read again either
  EXPECT_FALSE(WasRead());
}

TEST_F(CheckpointScanTest, ABrokenIndexIsReadOnceUntilItChanges) {
  Shard("shard.safetensors");
  std::ofstream(checkpoint() / kIndex) << "{";
  CountReads(kIndex);
  CheckpointScan scan(folder_.path(), "", 0);
  fs::create_directory(folder_ / "logs");
  testing::internal::CaptureStdout();  // of the log without SetUpLog
  EXPECT_TRUE(scan.Scan(1).empty());
  EXPECT_TRUE(WasRead());
  EXPECT_TRUE(scan.Scan(2).empty());
  EXPECT_FALSE(WasRead());
  EXPECT_TRUE(scan.Scan(1000).empty());  // a file system may have failed for a moment
  EXPECT_TRUE(WasRead());
  const std::string log = testing::internal::GetCapturedStdout();
  EXPECT_THAT(log, testing::HasSubstr("step-1: is not evaluated yet"));
  EXPECT_EQ(log.find("is not evaluated yet"), log.rfind("is not evaluated yet")) << "once";
}

TEST_F(CheckpointScanTest, ShardsInFoldersBelowAreLookedAtToo) {
  Shard("parts/a/shard.safetensors");
  CheckpointScan scan(folder_.path(), "", 0);
  EXPECT_TRUE(scan.Scan(1).empty());  // the index names a file that does not exist
  Write("parts/a/shard.safetensors", weights_.size() / 2);
  EXPECT_TRUE(scan.Scan(2).empty());
  Write("parts/a/shard.safetensors", weights_.size());
  EXPECT_EQ(scan.Scan(3).size(), 1u);
}

TEST_F(CheckpointScanTest, NothingIsOpenedBeforeItIsAtRest) {
  CountReads("model.safetensors");
  CheckpointScan scan(folder_.path(), "", 10);
  EXPECT_TRUE(scan.Scan(1).empty());
  EXPECT_TRUE(scan.Scan(10).empty());
  EXPECT_TRUE(scan.settling());
  EXPECT_FALSE(WasRead());
  EXPECT_EQ(scan.Scan(11).size(), 1u);
  EXPECT_TRUE(WasRead());
}

TEST_F(CheckpointScanTest, ItIsTheSameOneForAllThatWasEvaluatedBefore) {
  CheckpointScan scan(folder_.path(), "", 0);
  const std::vector<FoundCheckpoint> first = scan.Scan(1), again = scan.Scan(2),
                                     other = CheckpointScan(folder_.path(), "", 0).Scan(1);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(again.at(0).identity, first[0].identity);
  EXPECT_EQ(other.at(0).identity, first[0].identity);
  std::ofstream(checkpoint() / "config.json", std::ios::app) << "\n";
  EXPECT_NE(scan.Scan(3).at(0).identity, first[0].identity);
}

}  // namespace
}  // namespace evald
