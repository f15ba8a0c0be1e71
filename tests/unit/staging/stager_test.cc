#include "orchestrator/staging/stager.h"

#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "base/hash.h"
#include "base/jsonl.h"
#include "orchestrator/staging/chunk_list.h"
#include "staging_fixture.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

namespace fs = std::filesystem;
using testing::Bytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Put;
using testing::PutSharded;
using testing::PutWhole;

class StagerTest : public testing::StagingTest {
 protected:
  void ExpectSameContent(const fs::path& staged) {
    for (const CheckpointFile& file : ReadCheckpointLayout(source_).files) {
      EXPECT_EQ(ReadFile(staged / file.name), ReadFile(source_ / file.name)) << file.name;
    }
  }
  void ReplaceSource(uint32_t seed) { PutWhole(source_, Bytes(5'000'000, seed)); }
};

TEST_F(StagerTest, StagesAnOrdinaryFolderAndDropsItWithTheLastLease) {
  Put(source_ / "optimizer.pt", "big");
  Put(source_ / "additional_chat_templates/t.jinja", "{{ x }}");
  const Stager stager(Options());
  StagedCheckpoint staged = stager.Stage(source_);
  EXPECT_EQ(staged.directory(), root_ / staged.fingerprint());
  ExpectSameContent(staged.directory());
  EXPECT_FALSE(fs::exists(staged.directory() / "optimizer.pt"));
  EXPECT_THAT(staged.report().skipped, ElementsAre("optimizer.pt"));
  EXPECT_EQ(staged.report().bytes_read, staged.report().bytes);
  EXPECT_EQ(InRoot(), std::set<std::string>{staged.fingerprint()});

  std::optional<StagedCheckpoint> second(stager.Stage(source_));
  EXPECT_TRUE(second->report().reused);
  EXPECT_EQ(second->report().bytes_read, 0u);
  EXPECT_EQ(second->fingerprint(), staged.fingerprint());
  EXPECT_FALSE(staged.Release());
  EXPECT_TRUE(fs::exists(second->directory()));
  second.reset();
  EXPECT_THAT(InRoot(), IsEmpty());
}

TEST_F(StagerTest, TheListOfChunksIsWhatTheFingerprintIsMadeOf) {
  ReplaceSource(7);
  const StagedCheckpoint staged = Stager(Options()).Stage(source_);
  const std::vector<HashedFile> files = ReadChunkList(staged.directory());
  EXPECT_EQ(TreeFingerprint(files), staged.fingerprint());
  for (const HashedFile& file : files) {
    const std::string bytes = ReadFile(staged.directory() / file.name);
    ASSERT_EQ(bytes.size(), file.bytes) << file.name;
    for (size_t i = 0; i < file.chunks.size(); ++i)
      EXPECT_EQ(HashHex(bytes.substr(i * kHashChunkBytes, kHashChunkBytes)), file.chunks[i]);
  }
}

TEST_F(StagerTest, AListOfChunksThatCannotBeIsRefused) {
  const auto refusal = [](const char* text) {
    return RefusalOf([&] { ChunkListFromJson(ParseJson(text, "list"), "list"); });
  };
  EXPECT_EQ(refusal(R"([{"name":"a/b.json","bytes":1,"chunks":["x"]}])"), "");
  EXPECT_THAT(refusal(R"([{"name":"../b","bytes":1,"chunks":["x"]}])"), HasSubstr("../b"));
  EXPECT_THAT(refusal(R"([{"name":"/b","bytes":1,"chunks":["x"]}])"), HasSubstr("/b"));
  EXPECT_THAT(refusal(R"([{"name":"b","bytes":4194305,"chunks":["x"]}])"), HasSubstr("1 chunks"));
  EXPECT_THAT(refusal(R"([{"name":"b","bytes":-1,"chunks":[]}])"), HasSubstr("bytes"));
  EXPECT_THAT(refusal(R"([{"bytes":0,"chunks":[]}])"), HasSubstr("name"));
}

TEST_F(StagerTest, NothingOutsideOfTheRootsIsStaged) {
  const fs::path outside = temp_.path() / "outside";
  Put(outside / "secret.json", "secret");
  fs::create_symlink(outside / "secret.json", source_ / "linked.json");
  fs::create_directory_symlink(outside, source_ / "additional_chat_templates");
  StagerOptions options = Options();
  options.roots = ReadRoots({source_});
  const auto refusal = [&] { return CaughtText([&] { Stager(options).Stage(source_); }); };
  EXPECT_THAT(refusal(), HasSubstr("linked.json: a link on its way leads nowhere, or outside"));
  fs::remove(source_ / "linked.json");
  EXPECT_THAT(refusal(), HasSubstr("additional_chat_templates: a link on its way leads nowhere"));
  fs::remove(source_ / "additional_chat_templates");
  EXPECT_TRUE(fs::exists(Stager(options).Stage(source_).directory() / "config.json"));
  options.roots = ReadRoots({outside});
  EXPECT_THAT(CaughtText([&] { Stager(options).Stage(source_); }), HasSubstr(ReadRoots::kNotThere));
  EXPECT_THAT(CaughtText([&] { Stager(options).Stage(source_ / "absent"); }),
              HasSubstr(ReadRoots::kNotThere));
}

TEST_F(StagerTest, WhatIsStagedIsWhatWasOpened) {
  const fs::path other = temp_.path() / "other", moved = temp_.path() / "moved";
  PutWhole(other, Bytes(5'000'000, 2));
  const std::string meant = Stager(Options()).Stage(source_).fingerprint();
  StagerOptions options = Options();
  options.state.clear();
  CopyHooks hooks;
  bool exchanged = false;
  hooks.followable = [&](const fs::path&) {  // before anything is read
    fs::rename(source_, moved);
    fs::create_directory_symlink(other, source_);
    exchanged = true;
  };
  EXPECT_EQ(Stager(options).Stage(source_, hooks).fingerprint(), meant);
  EXPECT_TRUE(exchanged);
}

// The cache of the Hugging Face hub.
TEST_F(StagerTest, LinksInsideOfTheRootsAreStaged) {
  const fs::path snapshot = temp_.path() / "hub/snapshots/main", blobs = temp_.path() / "hub/blobs";
  fs::create_directories(snapshot);
  fs::create_directories(blobs);
  for (const CheckpointFile& file : ReadCheckpointLayout(source_).files) {
    fs::rename(source_ / file.name, blobs / file.name);
    fs::create_symlink(fs::path("../../blobs") / file.name, snapshot / file.name);
  }
  StagerOptions options = Options();
  options.roots = ReadRoots({temp_.path() / "hub"});
  const StagedCheckpoint staged = Stager(options).Stage(snapshot);
  EXPECT_EQ(ReadFile(staged.directory() / "config.json"), ReadFile(blobs / "config.json"));
  EXPECT_EQ(ReadFile(staged.directory() / "model.safetensors"),
            ReadFile(blobs / "model.safetensors"));
}

TEST_F(StagerTest, KeptOnesAreFoundWithoutReading) {
  std::string fingerprint;
  {
    StagedCheckpoint staged = Stager(Keeping()).Stage(source_);
    fingerprint = staged.fingerprint();
  }
  // Nothing of the weights is read: a checkpoint that can no longer be read is still found.
  fs::permissions(source_ / "model.safetensors", fs::perms::none);
  StagedCheckpoint again = Stager(Keeping()).Stage(source_);
  EXPECT_EQ(again.fingerprint(), fingerprint);
  EXPECT_EQ(again.report().bytes, ReadCheckpointLayout(source_).total_bytes);
  fs::permissions(source_ / "model.safetensors", fs::perms::owner_all);
}

// Such a copy was once leased again, and the worker blamed the checkpoint.
TEST_F(StagerTest, AKeptCopyThatWasCutShortIsStagedAgain) {
  fs::path weights;
  {
    const StagedCheckpoint staged = Stager(Keeping()).Stage(source_);
    weights = staged.directory() / "model.safetensors";
  }
  fs::permissions(weights, fs::perms::owner_all);
  fs::resize_file(weights, 1000);
  const StagedCheckpoint again = Stager(Keeping()).Stage(source_);
  EXPECT_FALSE(again.report().reused);
  ExpectSameContent(again.directory());
}

TEST_F(StagerTest, KeptOnesAreFoundWithoutAMemoToo) {
  StagerOptions options = Keeping();
  options.state.clear();
  Stager(options).Stage(source_).Release();
  EXPECT_TRUE(Stager(options).Stage(source_).report().reused);
}

TEST_F(StagerTest, ABrokenMemoIsPassedOver) {
  Stager(Options()).Stage(source_).Release();
  for (const auto& entry : fs::directory_iterator(temp_.path() / "state/staging")) {
    Put(entry.path(), "{\"version\":1");
  }
  EXPECT_FALSE(Stager(Options()).Stage(source_).report().reused);
  // A memo of a checkpoint that is no longer staged has no use and does no harm.
  EXPECT_FALSE(Stager(Options()).Stage(source_).report().reused);
}

TEST_F(StagerTest, AChangedSourceIsReadAgain) {
  const Stager stager(Keeping());
  const std::string first = stager.Stage(source_).fingerprint();
  ReplaceSource(2);
  const StagedCheckpoint changed = stager.Stage(source_);
  EXPECT_NE(changed.fingerprint(), first);
  ExpectSameContent(changed.directory());
  Put(source_ / "generation_config.json", "{}");
  const StagedCheckpoint grown = stager.Stage(source_);
  EXPECT_NE(grown.fingerprint(), changed.fingerprint());
  EXPECT_EQ(ListStaged(root_).size(), 3u);
}

TEST_F(StagerTest, AChangedShardInASubfolderIsReadAgain) {
  fs::remove(source_ / "model.safetensors");
  Put(source_ / "w/1.safetensors", testing::OneTensor("a", "one"));
  Put(source_ / "model.safetensors.index.json", R"({"weight_map":{"a":"w/1.safetensors"}})");
  const Stager stager(Keeping());
  const std::string first = stager.Stage(source_).fingerprint();
  EXPECT_TRUE(stager.Stage(source_).report().reused);
  Put(source_ / "w/1.safetensors", testing::OneTensor("a", "two"));
  EXPECT_NE(stager.Stage(source_).fingerprint(), first);
  EXPECT_TRUE(stager.Stage(source_).report().reused);
}

TEST_F(StagerTest, EqualContentFromElsewhereIsTheSameFolder) {
  const fs::path copy = temp_.path() / "copy";
  fs::copy(source_, copy, fs::copy_options::recursive);
  const Stager stager(Options());
  const StagedCheckpoint one = stager.Stage(source_);
  const StagedCheckpoint other = stager.Stage(copy);
  EXPECT_EQ(one.fingerprint(), other.fingerprint());
  EXPECT_GT(other.report().bytes_read, 0u);
  EXPECT_EQ(InRoot(), std::set<std::string>{one.fingerprint()});
  EXPECT_TRUE(stager.Stage(copy).report().reused);
}

TEST_F(StagerTest, BudgetKeepsTheMostRecent) {
  std::vector<std::string> fingerprints;
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    ReplaceSource(seed);
    fingerprints.push_back(Stager(Keeping(11'000'000)).Stage(source_).fingerprint());
  }
  std::vector<std::string> left;
  for (const StagedInfo& info : ListStaged(root_)) left.push_back(info.fingerprint);
  EXPECT_THAT(left, ElementsAre(fingerprints[1], fingerprints[2]));
  // A checkpoint that is larger than the budget goes, and the others stay.
  ReplaceSource(4);
  EXPECT_TRUE(Stager(Keeping(1000)).Stage(source_).Release());
  EXPECT_EQ(ListStaged(root_).size(), 2u);
  // Without a budget, earlier checkpoints stay.
  ReplaceSource(5);
  const std::string kept = Stager(Keeping()).Stage(source_).fingerprint();
  EXPECT_FALSE(Stager(Options()).Stage(source_).Release());
  EXPECT_TRUE(fs::exists(root_ / kept));
}

TEST_F(StagerTest, VerifyReadsAgainAndFindsWhatChanged) {
  StagerOptions options = Keeping();
  options.verify = true;
  const Stager stager(options);
  const StagedCheckpoint fresh = stager.Stage(source_);
  EXPECT_TRUE(fresh.report().verified);
  {
    const StagedCheckpoint again = stager.Stage(source_);
    EXPECT_TRUE(again.report().reused);
    EXPECT_EQ(again.report().bytes_read, again.report().bytes);
  }
  // One flipped byte in the staged copy, which is leased.
  const fs::path weights = fresh.directory() / "model.safetensors";
  fs::permissions(weights, fs::perms::owner_all);
  std::fstream(weights, std::ios::in | std::ios::out | std::ios::binary).seekp(3'000'000).put('!');
  EXPECT_THAT(CaughtText([&] { stager.Stage(source_); }),
              HasSubstr("have changed since they were staged"));
}

TEST_F(StagerTest, VerifyReplacesABrokenCopyThatNobodyUses) {
  StagerOptions options = Keeping();
  options.verify = true;
  const fs::path weights =
      root_ / Stager(options).Stage(source_).fingerprint() / "model.safetensors";
  fs::permissions(weights, fs::perms::owner_all);
  std::fstream(weights, std::ios::in | std::ios::out | std::ios::binary).seekp(3'000'000).put('!');
  const StagedCheckpoint again = Stager(options).Stage(source_);
  EXPECT_FALSE(again.report().reused);
  ExpectSameContent(again.directory());
}

TEST_F(StagerTest, BrokenCheckpointsLeaveNothingBehind) {
  const Stager stager(Options());
  const auto expect_refused = [&](const std::string& part) {
    EXPECT_THAT(CaughtText([&] { stager.Stage(source_); }), HasSubstr(part));
    EXPECT_THAT(InRoot(), IsEmpty());
  };
  fs::resize_file(source_ / "model.safetensors", 4'000'000);
  expect_refused("truncated");
  fs::remove_all(source_);
  expect_refused("does not exist");
  PutSharded(source_);
  fs::remove(source_ / "model-00001-of-00002.safetensors");
  expect_refused("not there");
  fs::remove(source_ / "tokenizer.json");
  expect_refused("no tokenizer.json");
}

TEST_F(StagerTest, ASourceThatChangesMeanwhileIsNotPublished) {
  StagerOptions options = Options();
  options.copy.threads = 1;
  options.copy.block_bytes = 65536;
  for (const bool grow : {false, true}) {
    CopyHooks hooks;
    hooks.progress = [&](uint64_t, uint64_t) {
      if (grow) Put(source_ / "added.json", "{}");
      if (!grow) Put(source_ / "config.json", R"({"model_type":"other"})");
    };
    EXPECT_THAT(CaughtText([&] { Stager(options).Stage(source_, hooks); }),
                HasSubstr("changed while it was being staged"));
    EXPECT_THAT(InRoot(), IsEmpty());
  }
}

TEST_F(StagerTest, CancellingCleansUp) {
  std::atomic<bool> cancel{false};
  CopyHooks hooks;
  hooks.progress = [&](uint64_t, uint64_t) { cancel = true; };
  hooks.cancel = &cancel;
  EXPECT_THAT(CaughtText([&] { Stager(Options()).Stage(source_, hooks); }),
              HasSubstr("was cancelled"));
  EXPECT_THAT(InRoot(), IsEmpty());
}

// A second process stages during a staging. It waits, sees progress, and reads nothing.
TEST_F(StagerTest, TwoProcessesStageOnce) {
  int to_child[2], from_child[2];
  ASSERT_EQ(::pipe(to_child) | ::pipe(from_child), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    bool told = false;
    CopyHooks hooks;
    hooks.progress = [&](uint64_t, uint64_t) {
      if (told) return;
      told = ::write(from_child[1], "x", 1) == 1 && ::read(to_child[0], &byte, 1) == 1;
    };
    StagedCheckpoint staged = Stager(Options()).Stage(source_, hooks);
    const bool waits =
        ::read(to_child[0], &byte, 1) == 1;  // keeps its lease until the other process has one
    ::_exit(waits && staged.report().bytes_read > 0 ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(::read(from_child[0], &byte, 1), 1);  // the child is in the middle of its staging
  uint64_t seen = 0;
  CopyHooks hooks;
  hooks.progress = [&](uint64_t done, uint64_t) {
    if (seen == 0) {
      EXPECT_EQ(::write(to_child[1], "x", 1), 1);
    }
    seen = done;
  };
  const StagedCheckpoint staged = Stager(Options()).Stage(source_, hooks);
  EXPECT_TRUE(staged.report().reused);
  EXPECT_TRUE(staged.report().waited);
  EXPECT_EQ(staged.report().bytes_read, 0u);
  EXPECT_GT(seen, 0u);
  ASSERT_EQ(::write(to_child[1], "x", 1), 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ExpectSameContent(staged.directory());
}

TEST_F(StagerTest, ManyThreadsAndTwoSourcesStageOnce) {
  const fs::path copy = temp_.path() / "copy";
  fs::copy(source_, copy, fs::copy_options::recursive);
  const Stager stager(Options());
  std::vector<std::thread> threads;
  std::atomic<uint64_t> read{0};
  std::atomic<int> ready{0};
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      const StagedCheckpoint staged = stager.Stage(i % 2 == 0 ? source_ : copy);
      read += staged.report().bytes_read;
      ++ready;
      while (ready < 6) ::usleep(1000);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read, 2 * ReadCheckpointLayout(source_).total_bytes);
  EXPECT_THAT(InRoot(), IsEmpty());
}

TEST_F(StagerTest, ListAndDrop) {
  EXPECT_TRUE(ListStaged(root_).empty());
  EXPECT_THAT(CaughtText([&] { DropStaged(root_, "abc"); }),
              HasSubstr("found 0 staged checkpoints"));
  const Stager stager(Keeping());
  const std::string first = stager.Stage(source_).fingerprint();
  ReplaceSource(2);
  std::optional<StagedCheckpoint> second(stager.Stage(source_));
  const std::vector<StagedInfo> listed = ListStaged(root_);
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].fingerprint, first);
  EXPECT_TRUE(listed[0].kept);
  EXPECT_EQ(listed[0].source, fs::canonical(source_).string());
  EXPECT_EQ(listed[1].leases, 1);
  EXPECT_GT(listed[1].last_used, 1.6e9);
  EXPECT_THAT(DropStaged(root_, first.substr(0, 8)).dropped, ElementsAre(first));
  EXPECT_THAT(DropStaged(root_, "all").leased, ElementsAre(second->fingerprint()));
  second.reset();
  EXPECT_THAT(DropStaged(root_, "all").dropped.size(), 1u);
  EXPECT_THAT(InRoot(), IsEmpty());
}

TEST_F(StagerTest, SharedMemoryIsTheSame) {
  StagerOptions options = Options();
  options.root = "/dev/shm/evald-test-" + std::to_string(::getpid());
  {
    const StagedCheckpoint staged = Stager(options).Stage(source_);
    ExpectSameContent(staged.directory());
  }
  EXPECT_TRUE(fs::is_empty(options.root));
  fs::remove(options.root);
}

}  // namespace
}  // namespace evald
