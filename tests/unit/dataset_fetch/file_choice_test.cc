#include "orchestrator/dataset_fetch/file_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/caught.h"

namespace evald::dataset_fetch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<fetch::HubFile> Named(const std::vector<std::string>& paths) {
  std::vector<fetch::HubFile> files;
  for (const std::string& path : paths) files.push_back({path, 1, "", ""});
  return files;
}

std::vector<std::string> Choose(const std::vector<std::string>& paths, const std::string& card,
                                const std::vector<PartAndSplit>& wanted) {
  return ChooseFiles("owner/name", Named(paths), card, wanted);
}

TEST(FileChoice, TheCardNamesTheFiles) {
  const std::string card = CardText(
      {{"en", {{"test", {"en/test-*"}}, {"dev", {"en/dev-*"}}}}, {"de", {{"test", {"de/test-*"}}}}},
      "# A dataset");
  const std::vector<std::string> paths = {"README.md",
                                          "en/test-00000-of-00002.parquet",
                                          "en/test-00001-of-00002.parquet",
                                          "en/dev-00000-of-00001.parquet",
                                          "de/test-00000-of-00001.parquet",
                                          ".gitattributes"};
  EXPECT_THAT(Choose(paths, card, {{"en", "test"}}),
              ElementsAre("en/test-00000-of-00002.parquet", "en/test-00001-of-00002.parquet"));
  EXPECT_THAT(Choose(paths, card, {{"en", "dev"}, {"de", "test"}}),
              ElementsAre("de/test-00000-of-00001.parquet", "en/dev-00000-of-00001.parquet"));
  EXPECT_THAT(RefusalOf([&] { Choose(paths, card, {{"fr", "test"}}); }),
              HasSubstr("owner/name: found the dataset_name 'fr', expected one of en, de"));
  EXPECT_THAT(RefusalOf([&] { Choose(paths, card, {{"en", "train"}}); }),
              HasSubstr("owner/name: no split 'train' of 'en', expected one of test, dev"));
  EXPECT_THAT(RefusalOf([&] { Choose(paths, card, {{"en", "train"}}); }), Not(HasSubstr("/tmp")));
}

TEST(FileChoice, FoldersAndNamesByConvention) {
  EXPECT_THAT(
      Choose({"data/train-00000-of-00001.parquet", "data/test-00000-of-00001.parquet", "other.txt"},
             "", {{"", "test"}}),
      ElementsAre("data/test-00000-of-00001.parquet"));
  // The first split's rows decide the types of files that have none.
  EXPECT_THAT(Choose({"train.jsonl", "test.jsonl", "dev.jsonl"}, "", {{"", "test"}}),
              ElementsAre("test.jsonl", "train.jsonl"));
  EXPECT_THAT(Choose({"main/test.jsonl", "other/test.jsonl"}, "", {{"main", "test"}}),
              ElementsAre("main/test.jsonl"));
}

TEST(FileChoice, WhatWouldNotBeReadIsNotChosen) {
  EXPECT_THAT(RefusalOf([] { Choose({"test.jsonl", "name.py"}, "", {{"", "test"}}); }),
              HasSubstr("owner/name: name.py describes the data"));
  EXPECT_THAT(RefusalOf([] { Choose({"train.zip"}, "", {{"", "train"}}); }),
              HasSubstr("the data file train.zip"));
  EXPECT_THAT(RefusalOf([] { Choose({"README.md"}, "# Nothing", {{"", "test"}}); }),
              HasSubstr("owner/name: no data file"));
}

TEST(FileChoice, TheHubsConversionHasItsSplits) {
  const auto files =
      Named({".gitattributes", "default/test/0000.parquet", "default/dev/0000.parquet",
             "default/dev/0001.parquet", "big/partial-train/0000.parquet", "x.parquet"});
  const std::vector<CardConfig> configs = ConvertedConfigs(files);
  ASSERT_EQ(configs.size(), 1u);
  EXPECT_EQ(configs[0].name, "default");
  const std::string card = CardText(configs, "made");
  EXPECT_THAT(ChooseFiles("owner/name", files, card, {{"", "dev"}}),
              ElementsAre("default/dev/0000.parquet", "default/dev/0001.parquet"));
}

}  // namespace
}  // namespace evald::dataset_fetch
