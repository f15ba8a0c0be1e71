#include "worker/generations_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "base/hash.h"
#include "base/jsonl.h"
#include "evald/error.h"
#include "support.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

Generation Text(int64_t doc_id, int idx = 0, const std::string& text = "") {
  Generation generation;
  generation.doc_id = doc_id;
  generation.idx = idx;
  generation.text = text.empty() ? fmt::format("text {}.{}", doc_id, idx) : text;
  generation.tokens_in = 10;
  generation.tokens_out = 5;
  generation.truncated = doc_id == 1 ? 3 : 0;
  return generation;
}

void ExpectKeys(GenerationsFile* file, const std::vector<Generation>& all) {
  for (const Generation& one : all) file->Expect({one.doc_id, one.idx, one.repeat}, one.kind);
}

class GenerationsFileTest : public testing::Test {
 protected:
  // Writes the generations in the given order and commits the file.
  GenerationsSummary Write(const fs::path& path, const std::vector<Generation>& all) {
    GenerationsFile file(path, 0, 1000, {});
    ExpectKeys(&file, all);
    for (const Generation& one : all) file.Add(one);
    return file.Commit();
  }

  std::vector<std::string> FilesLeft() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  TemporaryFolder folder_;
  fs::path path_ = folder_.path() / "3.0.jsonl";
};

TEST_F(GenerationsFileTest, BytesDoNotDependOnTheOrderOfCompletion) {
  std::vector<Generation> all;
  for (int64_t doc = 0; doc < 20; ++doc) {
    for (int idx = 0; idx < 4; ++idx) all.push_back(Text(doc, idx));
  }
  const GenerationsSummary in_order = Write(folder_.path() / "a.jsonl", all);
  std::shuffle(all.begin(), all.end(), std::mt19937(3));
  const GenerationsSummary shuffled = Write(folder_.path() / "b.jsonl", all);
  EXPECT_EQ(ReadFile(folder_.path() / "a.jsonl"), ReadFile(folder_.path() / "b.jsonl"));
  EXPECT_EQ(in_order.hash, shuffled.hash);
  EXPECT_EQ(in_order.hash, HashHex(ReadFile(folder_.path() / "a.jsonl")));
  EXPECT_EQ(shuffled.bytes, fs::file_size(folder_.path() / "b.jsonl"));
  EXPECT_EQ(shuffled.requests, 80);
  EXPECT_EQ(shuffled.truncated, 4);
  EXPECT_EQ(shuffled.tokens_in, 800);
  EXPECT_EQ(shuffled.tokens_out, 400);
  EXPECT_EQ(FilesLeft(), (std::vector<std::string>{"a.jsonl", "b.jsonl"}));
}

TEST_F(GenerationsFileTest, WhatWasFlushedIsSalvagedAndATornLineIsNot) {
  {
    GenerationsFile file(path_, 0, 10, {});
    ExpectKeys(&file, {Text(0), Text(1), Text(2)});
    file.Add(Text(2));
    file.Add(Text(0));
    file.Flush();
  }
  const fs::path part = path_.string() + ".part";
  std::ofstream(part, std::ios::app) << R"({"doc_id":1,"idx":0,"repeat":0,"text":"cut)";
  const fs::path next = folder_.path() / "3.1.jsonl";
  GenerationsFile file(next, 0, 10, {path_, part});
  EXPECT_EQ(file.salvaged(), 2);
  EXPECT_TRUE(file.Expect({0, 0, 0}, RequestKind::kGenerateUntil));
  EXPECT_FALSE(file.Expect({1, 0, 0}, RequestKind::kGenerateUntil));
  EXPECT_TRUE(file.Expect({2, 0, 0}, RequestKind::kGenerateUntil));
  file.Add(Text(1));
  EXPECT_EQ(file.Commit().requests, 3);
  EXPECT_EQ(Write(folder_.path() / "whole.jsonl", {Text(0), Text(1), Text(2)}).hash,
            HashHex(ReadFile(next)));
}

TEST_F(GenerationsFileTest, ItsOwnPartFromBeforeACrashIsSalvaged) {
  {
    GenerationsFile file(path_, 0, 10, {});
    file.Add(Text(4));
    file.Flush();
  }
  GenerationsFile file(path_, 0, 10, {});
  EXPECT_EQ(file.salvaged(), 1);
  EXPECT_TRUE(file.Expect({4, 0, 0}, RequestKind::kGenerateUntil));
  EXPECT_EQ(file.Commit().requests, 1);
}

TEST_F(GenerationsFileTest, OnlyRequestsOfTheSliceAreCommitted) {
  const fs::path old = folder_.path() / "old.jsonl";
  Generation scored = Text(5);
  scored.kind = RequestKind::kLoglikelihoodRolling;
  Write(old, {Text(1), Text(4), Text(4, 7), scored, Text(9)});
  GenerationsFile file(path_, 4, 9, {old});
  EXPECT_EQ(file.salvaged(), 3);  // documents 4 (twice) and 5
  EXPECT_TRUE(file.Expect({4, 0, 0}, RequestKind::kGenerateUntil));
  EXPECT_FALSE(file.Expect({5, 0, 0}, RequestKind::kGenerateUntil));  // of another kind
  file.Add(Text(5));
  EXPECT_EQ(file.Commit().requests, 2);
  const auto lines = test::ReadGenerations(path_);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].doc_id, 4);
  EXPECT_EQ(lines[0].idx, 0);
  EXPECT_EQ(lines[1].doc_id, 5);
  EXPECT_EQ(lines[1].kind, RequestKind::kGenerateUntil);
}

TEST_F(GenerationsFileTest, TheFirstLineOfAKeyWins) {
  const fs::path a = folder_.path() / "a.jsonl", b = folder_.path() / "b.jsonl";
  Write(a, {Text(1, 0, "first")});
  Write(b, {Text(1, 0, "second"), Text(2, 0, "other")});
  GenerationsFile file(path_, 0, 10, {a, b});
  file.Expect({1, 0, 0}, RequestKind::kGenerateUntil);
  file.Expect({2, 0, 0}, RequestKind::kGenerateUntil);
  file.Commit();
  EXPECT_EQ(test::ReadGenerations(path_)[0].text, "first");
}

TEST_F(GenerationsFileTest, RubbishIsPassedOver) {
  const fs::path rubbish = folder_.path() / "rubbish";
  std::string bytes(1000, '\0');
  bytes += "\n{}\nnull\n" + std::string(5000, '[') + "\n{\"doc_id\":1e999}\n\xFF\xFE\n";
  bytes += ToLine(ToJson(Text(2))) + "\n";
  std::ofstream(rubbish, std::ios::binary) << bytes;
  GenerationsFile file(path_, 0, 10, {rubbish, folder_.path() / "absent", folder_.path()});
  EXPECT_EQ(file.salvaged(), 1);
}

TEST_F(GenerationsFileTest, ALongAndAnEmptyGenerationKeepTheirBytes) {
  std::string long_text(10 << 20, 'a');
  long_text.replace(5 << 20, 4, "\xF0\x9F\x98\x80");
  Generation empty = Text(1);
  empty.text = "";
  Write(path_, {Text(0, 0, long_text), empty});
  const auto lines = test::ReadGenerations(path_);
  EXPECT_EQ(lines[0].text, long_text);
  EXPECT_EQ(lines[1].text, "");
}

TEST_F(GenerationsFileTest, ASecondAnswerIsAnError) {
  GenerationsFile file(path_, 0, 10, {});
  file.Add(Text(1));
  EXPECT_THROW(file.Add(Text(1)), Error);
}

TEST_F(GenerationsFileTest, AWriteThatTheSystemRefusesNamesThePath) {
  PendingFile refused(path_);
  refused.Append("x");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  const Error e = Caught([&] { refused.Flush(); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_EQ(e.kind(), ErrorKind::kInfrastructure);
  EXPECT_THAT(e.what(), testing::HasSubstr(path_.string()));
}

}  // namespace
}  // namespace evald
