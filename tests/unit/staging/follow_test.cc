// Follows a staging. Bytes that the record calls landed are there, exactly, while the rest is not.
#include <thread>

#include "checkpoint/landed.h"
#include "orchestrator/staging/fingerprint.h"
#include "staging_fixture.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::Bytes;
using ::testing::HasSubstr;
using testing::PutWhole;

constexpr milliseconds kNoWait{0};
constexpr milliseconds kLong{120'000};
constexpr const char* kShard = "model.safetensors";

class FollowTest : public testing::StagingTest {
 protected:
  FollowTest() { PutWhole(source_, Bytes(4 * kHashChunkBytes, 1)); }
};

TEST_F(FollowTest, WhatHasLandedIsThereBeforeTheRest) {
  StagerOptions options = Options();
  options.copy.threads = 1;
  const std::string expected = ReadFile(source_ / kShard);
  std::optional<LandedReader> reader;
  std::atomic<uint64_t> released{0};  // chunks of the shard that may be copied
  std::atomic<uint64_t> copied{0};
  CopyHooks hooks;
  fs::path folder;
  std::thread follower;
  hooks.followable = [&](const fs::path& staging) {
    folder = staging;
    reader.emplace(staging);
    follower = std::thread([&] {
      // The configuration and the beginning of the weights come first.
      EXPECT_TRUE(reader->Wait("config.json", 0, 1, kLong));
      EXPECT_TRUE(reader->Wait("tokenizer.json", 0, 2, kLong));
      EXPECT_EQ(ReadFile(folder / "tokenizer.json"), ReadFile(source_ / "tokenizer.json"));
      const MappedFile shard(folder / kShard);
      ASSERT_EQ(shard.size(), expected.size());
      for (uint64_t at = 0; at < expected.size(); at += kHashChunkBytes) {
        const uint64_t end = std::min(at + kHashChunkBytes, expected.size());
        EXPECT_TRUE(reader->Wait(kShard, at, end, kLong));
        EXPECT_TRUE(shard.view().substr(at, end - at) == expected.substr(at, end - at)) << at;
        if (end < expected.size()) {
          EXPECT_FALSE(reader->Wait(kShard, end, end + 1, kNoWait)) << at;
        }
        ++released;
      }
    });
  };
  hooks.landed = [&](size_t, uint64_t) {  // the one copying thread waits for the follower
    const uint64_t shard_chunks = copied++ < 2 ? 0 : copied - 2;  // after the two small files
    while (released < shard_chunks) std::this_thread::yield();
  };
  const StagedCheckpoint staged = Stager(options).Stage(source_, hooks);
  follower.join();
  EXPECT_EQ(folder.parent_path(), root_);
  EXPECT_EQ(reader->Published(), staged.fingerprint());
  EXPECT_FALSE(fs::exists(staged.directory() / kLandedFile));
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_EQ(ReadFile(staged.directory() / kShard), expected);
}

TEST_F(FollowTest, AFailedStagingIsHeardOf) {
  std::optional<LandedReader> reader;
  std::atomic<bool> cancel{false};
  CopyHooks hooks;
  hooks.cancel = &cancel;
  hooks.followable = [&](const fs::path& staging) {
    reader.emplace(staging);
    cancel = true;
  };
  // The cancellation is seen while each of three threads has one chunk. There are seven chunks.
  hooks.landed = [](size_t, uint64_t) { std::this_thread::sleep_for(milliseconds(300)); };
  EXPECT_THAT(CaughtText([&] { Stager(Options()).Stage(source_, hooks); }), HasSubstr("cancelled"));
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->Published(), std::nullopt);
  const std::string error = CaughtText([&] {
    for (const CheckpointFile& file : reader->files()) {
      reader->Wait(file.name, 0, file.bytes, kNoWait);
    }
  });
  EXPECT_THAT(error, HasSubstr("the staging failed"));
  EXPECT_TRUE(InRoot().empty());
}

TEST_F(FollowTest, NothingIsFollowedWhereNothingIsCopied) {
  const StagedCheckpoint first = Stager(Options()).Stage(source_);
  CopyHooks hooks;
  hooks.followable = [](const fs::path&) { FAIL(); };
  EXPECT_TRUE(Stager(Options()).Stage(source_, hooks).report().reused);
}

TEST_F(FollowTest, AnotherProcessesStagingCanBeFollowed) {
  // A thread plays the other process: each Stage opens its own locks.
  std::atomic<bool> second_follows{false};
  CopyHooks first, second;
  first.landed = [&](size_t, uint64_t) {
    while (!second_follows) std::this_thread::yield();
  };
  std::optional<LandedReader> reader;
  second.followable = [&](const fs::path& staging) {
    reader.emplace(staging);
    second_follows = true;
  };
  std::thread other;
  first.followable = [&](const fs::path&) {
    other = std::thread([&] { Stager(Options()).Stage(source_, second); });
  };
  const StagedCheckpoint staged = Stager(Options()).Stage(source_, first);
  other.join();
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->Published(), staged.fingerprint());
}

}  // namespace
}  // namespace evald
