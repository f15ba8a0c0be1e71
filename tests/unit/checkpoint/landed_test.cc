#include "checkpoint/landed.h"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <thread>

#include "checkpoint_files.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using testing::Put;

constexpr milliseconds kNoWait{0};
constexpr milliseconds kLong{20'000};
constexpr uint64_t kChunk = kLandedChunkBytes;

class LandedTest : public ::testing::Test {
 protected:
  TemporaryFolder temp_;
  fs::path folder_ = temp_.path();
  // Files of no chunk, one chunk, one chunk and a byte, and exactly two chunks.
  std::vector<CheckpointFile> files_ = {
      {"empty", 0}, {"one", 5}, {"sub/more", kChunk + 1}, {"two", 2 * kChunk}};
};

TEST_F(LandedTest, TellsWhatHasLandedAndNothingElse) {
  EXPECT_FALSE(LandedReader::Exists(folder_));
  LandedWriter writer(folder_, files_);
  ASSERT_TRUE(LandedReader::Exists(folder_));
  const LandedReader reader(folder_);
  ASSERT_EQ(reader.files().size(), 4u);
  EXPECT_EQ(reader.files()[2].name, "sub/more");
  EXPECT_EQ(reader.files()[2].bytes, kChunk + 1);
  EXPECT_TRUE(reader.Wait("empty", 0, 0, kNoWait));
  for (const CheckpointFile& file : files_) {
    if (file.bytes > 0) {
      EXPECT_FALSE(reader.Wait(file.name, 0, 1, kNoWait)) << file.name;
    }
  }
  writer.Landed(2, 1);
  EXPECT_TRUE(reader.Wait("sub/more", kChunk, kChunk + 1, kNoWait));
  EXPECT_FALSE(reader.Wait("sub/more", kChunk - 1, kChunk + 1, kNoWait));
  EXPECT_FALSE(reader.Wait("one", 0, 5, kNoWait));
  EXPECT_FALSE(reader.Wait("two", 0, 1, kNoWait));
  writer.Landed(2, 0);
  EXPECT_TRUE(reader.Wait("sub/more", 0, kChunk + 1, kNoWait));
  writer.Landed(3, 0);
  EXPECT_TRUE(reader.Wait("two", 0, kChunk, kNoWait));
  EXPECT_FALSE(reader.Wait("two", 0, kChunk + 1, kNoWait));
  EXPECT_EQ(reader.Published(), std::nullopt);
}

TEST_F(LandedTest, WakesWhoWaits) {
  LandedWriter writer(folder_, files_);
  const LandedReader reader(folder_);
  std::atomic<bool> landed{false};
  std::thread follower([&] { landed = reader.Wait("two", 0, 2 * kChunk, kLong); });
  for (const uint64_t chunk : {uint64_t{1}, uint64_t{0}}) {
    std::this_thread::sleep_for(milliseconds(20));
    EXPECT_FALSE(landed);
    writer.Landed(3, chunk);
  }
  follower.join();
  EXPECT_TRUE(landed);
}

TEST_F(LandedTest, IsPublishedUnderAFingerprintAndHiddenBefore) {
  const std::string fingerprint(32, 'f');
  std::optional<LandedWriter> writer(std::in_place, folder_, files_);
  const LandedReader reader(folder_);
  writer->Landed(1, 0);
  writer->Hide();
  EXPECT_FALSE(LandedReader::Exists(folder_));
  EXPECT_TRUE(fs::is_empty(folder_));
  EXPECT_THAT(CaughtText([&] { LandedReader again(folder_); }), HasSubstr("No such file"));
  EXPECT_EQ(reader.Published(), std::nullopt);
  Put(folder_ / "config.json", "{}");
  fs::rename(folder_, folder_.string() + "-published");
  EXPECT_EQ(ReadFile(reader.folder() / "config.json"), "{}") << "under any name";
  fs::rename(folder_.string() + "-published", folder_);
  writer->Publish(fingerprint);
  writer.reset();
  EXPECT_EQ(reader.Published(), fingerprint);
  EXPECT_TRUE(reader.Wait("one", 0, 5, kNoWait));
}

TEST_F(LandedTest, AFailedStagingEndsAllWaiting) {
  std::optional<LandedWriter> writer(std::in_place, folder_, files_);
  const LandedReader reader(folder_);
  writer->Landed(1, 0);
  std::string error;
  std::thread follower([&] { error = CaughtText([&] { reader.Wait("two", 0, 1, kLong); }); });
  std::this_thread::sleep_for(milliseconds(20));
  writer.reset();
  follower.join();
  EXPECT_THAT(error, HasSubstr(folder_.string() + ": the staging failed before all had landed"));
  EXPECT_TRUE(reader.Wait("one", 0, 5, kNoWait));  // bytes that had landed still count
  EXPECT_EQ(reader.Published(), std::nullopt);
}

TEST_F(LandedTest, AKilledOwnerIsNoticed) {
  const pid_t child = ::fork();
  if (child == 0) {
    LandedWriter writer(folder_, files_);
    writer.Landed(1, 0);
    ::_exit(0);  // no destructor runs, as after kill -9
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  const LandedReader reader(folder_);
  EXPECT_TRUE(reader.Wait("one", 0, 5, kNoWait));
  EXPECT_THAT(CaughtText([&] { reader.Wait("two", 0, 1, kLong); }), HasSubstr("was abandoned"));
}

TEST_F(LandedTest, RefusesWhatIsNoRecordOrNotInIt) {
  LandedWriter writer(folder_, files_);
  const LandedReader reader(folder_);
  EXPECT_THAT(CaughtText([&] { reader.Wait("other", 0, 1, kNoWait); }), HasSubstr("of other"));
  EXPECT_THAT(CaughtText([&] { reader.Wait("one", 0, 6, kNoWait); }), HasSubstr("0 to 6 of one"));
  const std::string whole = ReadFile(folder_ / kLandedFile);
  const auto error_of = [&](const std::string& content) {
    Put(folder_ / "copy" / kLandedFile, content);
    return CaughtText([&] { LandedReader read(folder_ / "copy"); });
  };
  EXPECT_THAT(error_of(""), HasSubstr("is no record"));
  EXPECT_THAT(error_of(whole.substr(0, whole.size() - 1)), HasSubstr("is no record"));
  EXPECT_THAT(error_of(whole + '\0'), HasSubstr("is no record"));
  EXPECT_THAT(error_of("x" + whole.substr(1)), HasSubstr("is no record"));
  std::string damaged = whole;
  damaged.replace(damaged.find("sub"), 3, "\"\"\"");
  EXPECT_NE(error_of(damaged), "");
}

}  // namespace
}  // namespace evald
