#include "orchestrator/staging/copy.h"

#include <fcntl.h>

#include <thread>

#include "base/jsonl.h"
#include "orchestrator/staging/fingerprint.h"
#include "orchestrator/staging/reserve.h"
#include "staging_fixture.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;
using testing::Bytes;
using ::testing::HasSubstr;
using testing::Put;

class CopyTest : public ::testing::Test {
 protected:
  std::vector<FileStamp> Stamps(const std::vector<std::string>& names) const {
    std::vector<FileStamp> stamps;
    for (const std::string& name : names) stamps.push_back(StampFile(source_, name));
    return stamps;
  }
  CopyResult Copy(const std::vector<FileStamp>& stamps, const CopyOptions& options,
                  const CopyHooks& hooks = {}) {
    target_ = temp_.path() / ("target" + std::to_string(++copies_));
    MakeTree(stamps, target_);
    return CopyTree(source_, stamps, target_, options, hooks);
  }

  TemporaryFolder temp_;
  fs::path source_ = temp_.path() / "source";
  fs::path target_;
  int copies_ = 0;
};

TEST_F(CopyTest, FingerprintsAreThoseOfAnotherImplementation) {
  const std::string golden = EVALD_SOURCE_DIR "/tests/golden/staging/fingerprints.json";
  const Json cases = ParseJson(ReadFile(golden), golden);
  ASSERT_EQ(cases.size(), 3u);
  for (const Json& golden_case : cases) {
    std::vector<std::string> names;
    for (const Json& file : golden_case["files"]) {
      names.push_back(file["name"]);
      Put(source_ / names.back(), Bytes(file["bytes"], file["seed"]));
    }
    const std::vector<FileStamp> stamps = Stamps(names);
    const auto fingerprint = golden_case["fingerprint"].get<std::string>();
    for (const int threads : {1, 2, 7}) {
      for (const uint64_t block : {uint64_t{65536}, uint64_t{1} << 20, kHashChunkBytes}) {
        for (const bool direct : {false, true}) {
          const CopyResult result =
              CopyTree(source_, stamps, {},
                       {.threads = threads, .block_bytes = block, .direct = direct}, {});
          EXPECT_EQ(result.fingerprint, fingerprint) << golden_case["case"];
        }
      }
    }
    EXPECT_EQ(Copy(stamps, {}).fingerprint, fingerprint);
    for (const std::string& name : names) {
      EXPECT_EQ(ReadFile(target_ / name), ReadFile(source_ / name)) << name;
    }
  }
}

TEST_F(CopyTest, FingerprintCoversNamesSizesAndEveryByte) {
  const auto fingerprint = [](const std::string& name, uint64_t bytes, const std::string& chunk) {
    return TreeFingerprint({{name, bytes, {chunk}}});
  };
  const std::string base = fingerprint("a", 3, std::string(32, '0'));
  EXPECT_NE(base, fingerprint("b", 3, std::string(32, '0')));
  EXPECT_NE(base, fingerprint("a", 4, std::string(32, '0')));
  EXPECT_NE(base, fingerprint("a", 3, std::string(31, '0') + "1"));
  EXPECT_EQ(TreeFingerprint({{"a", 1, {"x"}}, {"b", 2, {"y"}}}),
            TreeFingerprint({{"b", 2, {"y"}}, {"a", 1, {"x"}}}));
}

TEST_F(CopyTest, ReadsPastThePageCacheWhereItIsCold) {
  Put(source_ / "w", Bytes(3 * kHashChunkBytes + 777, 9));
  const UniqueFd fd(::open((source_ / "w").c_str(), O_RDONLY));
  ASSERT_EQ(::fsync(fd.get()), 0);
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  const UniqueFd probe(::open((source_ / "w").c_str(), O_RDONLY | O_DIRECT));
  const CopyResult cold = Copy(Stamps({"w"}), {.threads = 2});
  EXPECT_EQ(cold.bytes_read, 3 * kHashChunkBytes + 777);
  if (probe) {
    EXPECT_GT(cold.bytes_direct, 0u);
  }
  EXPECT_EQ(ReadFile(target_ / "w"), ReadFile(source_ / "w"));
  const CopyResult warm = Copy(Stamps({"w"}), {.threads = 2});
  EXPECT_EQ(warm.bytes_direct, 0u);
  EXPECT_EQ(warm.fingerprint, cold.fingerprint);
}

TEST_F(CopyTest, TellsHowFarItIs) {
  Put(source_ / "a", Bytes(2 * kHashChunkBytes + 5, 1));
  Put(source_ / "b", Bytes(10, 2));
  uint64_t last_done = 0, total = 0;
  CopyHooks hooks;
  hooks.progress = [&](uint64_t done, uint64_t of) {
    EXPECT_GE(done, last_done);
    last_done = done;
    total = of;
  };
  Copy(Stamps({"a", "b"}), {.threads = 4}, hooks);
  EXPECT_EQ(total, 2 * kHashChunkBytes + 15);
  EXPECT_EQ(last_done, total);
}

TEST_F(CopyTest, WhatDescribesTheWeightsComesFirst) {
  Put(source_ / "a.safetensors", Bytes(2 * kHashChunkBytes + 5, 1));
  Put(source_ / "b.safetensors", Bytes(kHashChunkBytes + 1, 2));
  Put(source_ / "tokenizer.json", Bytes(10, 3));
  std::vector<std::pair<size_t, uint64_t>> landed;
  CopyHooks hooks;
  hooks.landed = [&](size_t file, uint64_t chunk) { landed.emplace_back(file, chunk); };
  const auto stamps = Stamps({"a.safetensors", "b.safetensors", "tokenizer.json"});
  Copy(stamps, {.threads = 1}, hooks);
  EXPECT_THAT(landed, ::testing::ElementsAre(std::pair(0, 0), std::pair(1, 0), std::pair(2, 0),
                                             std::pair(0, 1), std::pair(0, 2), std::pair(1, 1)));
  for (const FileStamp& file : stamps) {
    EXPECT_EQ(ReadFile(target_ / file.name), ReadFile(source_ / file.name)) << file.name;
  }
}

TEST_F(CopyTest, StopsWhenCancelledOrWhenAHookThrows) {
  Put(source_ / "a", Bytes(3 * kHashChunkBytes, 1));
  const std::atomic<bool> cancel{true};
  EXPECT_THAT(CaughtText([&] { Copy(Stamps({"a"}), {}, {.cancel = &cancel}); }),
              HasSubstr("was cancelled"));
  CopyHooks hooks;
  hooks.progress = [](uint64_t, uint64_t) {
    throw Error(ErrorKind::kInfrastructure, "told too much");
  };
  EXPECT_THAT(CaughtText([&] { Copy(Stamps({"a"}), {}, hooks); }), HasSubstr("told too much"));
}

TEST_F(CopyTest, RefusesASourceThatChanges) {
  Put(source_ / "a", Bytes(100'000, 1));
  std::vector<FileStamp> stamps = Stamps({"a"});
  Put(source_ / "a", Bytes(100'001, 1));
  EXPECT_THAT(CaughtText([&] { Copy(stamps, {}); }),
              HasSubstr("a: changed while it was being staged"));
  stamps = Stamps({"a"});
  ++stamps[0].mtime_ns;
  EXPECT_THAT(CaughtText([&] { Copy(stamps, {}); }), HasSubstr("changed"));
  fs::remove(source_ / "a");
  EXPECT_THAT(CaughtText([&] { Copy(stamps, {}); }), HasSubstr("a: No such file"));
}

TEST_F(CopyTest, RefusesFoolishOptions) {
  Put(source_ / "a", "x");
  EXPECT_THAT(CaughtText([&] { Copy(Stamps({"a"}), {.block_bytes = 3'000'000}); }),
              HasSubstr("divisor"));
  EXPECT_THAT(CaughtText([&] { Copy(Stamps({"a"}), {.threads = -1}); }), HasSubstr("-1 threads"));
}

}  // namespace
}  // namespace evald
