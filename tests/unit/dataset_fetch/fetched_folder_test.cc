#include "orchestrator/dataset_fetch/fetched_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/caught.h"
#include "../support/temporary_folder.h"
#include "base/file.h"
#include "datasets/hub_folder.h"

namespace evald::dataset_fetch {
namespace {

using testing::HasSubstr;

TEST(FetchedFolder, FilesComeTogetherWithWhatIsKeptOfThem) {
  const TemporaryFolder folder;
  folder.Write("old.jsonl", "x");
  folder.Write(".evald-fetch/abc", "content");
  Fetched fetched{"owner/name", "main", "main", std::string(40, 'a'), {{"part", "test"}}, {}};
  fetched.files["data/test.jsonl"] = {7, std::string(64, 'b')};
  PutInPlace(folder.path(), fetched, {{"data/test.jsonl", folder / ".evald-fetch/abc"}},
             {"old.jsonl"});
  EXPECT_EQ(ReadFile(folder / "data/test.jsonl"), "content");
  EXPECT_FALSE(std::filesystem::exists(folder / "old.jsonl"));
  const auto read = ReadFetched(folder.path());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->commit, fetched.commit);
  EXPECT_EQ(read->splits, fetched.splits);
  EXPECT_EQ(read->files.at("data/test.jsonl").bytes, 7u);
  const ReadFolder copy(folder.path());
  EXPECT_NO_THROW(RequireFetchedSplit(copy, "part", "test"));
  EXPECT_THAT(RefusalOf([&] { RequireFetchedSplit(copy, "part", "train"); }),
              HasSubstr("has not fetched the split 'train' of 'part'"));
}

TEST(FetchedFolder, AFolderThatIsNotReadyIsNotRead) {
  const TemporaryFolder folder;
  folder.Write(kFetchedFile, R"({"version":1,"splits":[["","test"]],"pending":["a"]})");
  EXPECT_THAT(RefusalOf([&] { RequireFetchedSplit(ReadFolder(folder.path()), "", "test"); }),
              HasSubstr("was ended while it put files into this folder"));
}

TEST(FetchedFolder, WhatIsKeptIsChecked) {
  const TemporaryFolder folder;
  EXPECT_FALSE(ReadFetched(folder.path()));
  folder.Write(kFetchedFile, R"({"version":2})");
  EXPECT_THAT(RefusalOf([&] { ReadFetched(folder.path()); }), HasSubstr("another version"));
  folder.Write(kFetchedFile,
               R"({"version":1,"repository":"a","revision":"main","branch":"main","commit":"c",)"
               R"("splits":[],"files":{"../x":{"bytes":1,"sha256":""}}})");
  EXPECT_THAT(RefusalOf([&] { ReadFetched(folder.path()); }), HasSubstr("leads out of its folder"));
}

TEST(HubFileNames, AreFilesOfADataset) {
  const auto name = ParseHubFileName("hf://datasets/owner/name@v1/data/a.jsonl", "x");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->dataset, "owner/name");
  EXPECT_EQ(name->revision, "v1");
  EXPECT_EQ(name->path, "data/a.jsonl");
  EXPECT_FALSE(ParseHubFileName("data/a.jsonl", "x"));
  for (const char* wrong : {"hf://datasets/owner/name", "hf://datasets/owner/name/../a",
                            "hf://models/owner/name/a", "hf://datasets/owner/name//a"}) {
    EXPECT_THAT(RefusalOf([&] { ParseHubFileName(wrong, "t.yaml:1"); }),
                HasSubstr("t.yaml:1: found 'hf://"))
        << wrong;
  }
}

}  // namespace
}  // namespace evald::dataset_fetch
