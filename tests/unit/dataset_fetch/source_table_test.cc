#include "orchestrator/dataset_fetch/source_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/caught.h"
#include "datasets/task_set.h"
#include "orchestrator/dataset_fetch/wanted_data.h"

namespace evald::dataset_fetch {
namespace {

using testing::HasSubstr;

TEST(SourceTable, EachDatasetOfABuiltInTaskHasAnEntry) {
  const TaskRegistry registry({});
  std::vector<TaskRequest> requests;
  for (const TaskListing& task : registry.List()) {
    if (task.kind == "task") requests.emplace_back().name = task.name;
  }
  const WantedData wanted = WantedDataOf(registry.Resolve(requests), "data");
  EXPECT_GT(wanted.datasets.size(), 20u);
  for (const WantedDataset& dataset : wanted.datasets)
    EXPECT_TRUE(BuiltinSourceTable().contains(dataset.dataset)) << dataset.dataset;
  EXPECT_TRUE(BuiltinSourceTable().at("Idavidrein/gpqa").gated);
}

TEST(SourceTable, IsReadAsItIsWritten) {
  const std::string text =
      "hub:\n"
      "- dataset: a/b\n  repository: c/d\n  revision: v1\n  converted: true\n  gated: true\n"
      "  splits: {test: [\"test*.jsonl\", x.jsonl], dev: dev.jsonl}\n"
      "  elsewhere: {fewshot: \"made by hand: see b\"}\n"
      "  files:\n    data/x y.jsonl: {bytes: 5, sha256: " +
      std::string(64, 'a') + "}\n    other.jsonl: {}\n- {dataset: e/f}\n";
  const SourceTable table = ParseSourceTable(text, "mine.yaml");
  const HubSource& one = table.at("a/b");
  EXPECT_EQ(one.repository, "c/d");
  EXPECT_EQ(one.splits.size(), 2u);
  EXPECT_EQ(one.files.at("data/x y.jsonl").bytes, 5u);
  EXPECT_EQ(one.files.at("data/x y.jsonl").where, "mine.yaml:10");
  EXPECT_EQ(table.at("e/f").repository, "e/f");
  const std::string again = SourceTableText(table);
  EXPECT_EQ(SourceTableText(ParseSourceTable(again, "again.yaml")), again);
}

TEST(SourceTable, ItsFaultsAreNamed) {
  const auto refusal = [](const std::string& text) {
    return RefusalOf([&] { ParseSourceTable(text, "mine.yaml"); });
  };
  EXPECT_THAT(refusal("hub:\n- {dataset: a/b, revison: x}\n"),
              HasSubstr("mine.yaml:2: unknown key 'revison'"));
  EXPECT_THAT(refusal("hub: {a: b}\n"), HasSubstr("mine.yaml:1: hub is not a list"));
  EXPECT_THAT(refusal("hub:\n- {repository: a/b}\n"), HasSubstr("has no dataset"));
  EXPECT_THAT(refusal("hub:\n- {dataset: a/../b}\n"), HasSubstr("expected owner/name"));
  EXPECT_THAT(refusal("hub:\n- {dataset: a/b}\n- {dataset: a/b}\n"),
              HasSubstr("a second entry of the dataset 'a/b'"));
  EXPECT_THAT(refusal("hub:\n- dataset: a/b\n  files:\n    ../x: {}\n"),
              HasSubstr("leads out of its folder"));
  EXPECT_THAT(refusal("hub:\n- dataset: a/b\n  files:\n    x: {sha256: abc}\n"),
              HasSubstr("found 'abc' as sha256"));
  EXPECT_THAT(refusal("hubs: []\n"), HasSubstr("unknown key 'hubs'"));
  EXPECT_THAT(refusal("hub:\n- {dataset: a/b, gated: maybe}\n"),
              HasSubstr("neither true nor false"));
}

TEST(SourceTable, TheUsersWordCountsFirst) {
  const SourceTable builtin = ParseSourceTable(
      "hub:\n- {dataset: a/b, revision: v1, gated: true, files: {x: {bytes: 1}}}\n", "b.yaml");
  const SourceTable user =
      ParseSourceTable("hub:\n- {dataset: a/b, revision: v2, files: {y: {bytes: 2}}}\n", "u.yaml");
  const HubSource source = SourceOf("a/b", user, builtin);
  EXPECT_EQ(source.revision, "v2");
  EXPECT_TRUE(source.gated);
  EXPECT_EQ(source.files.size(), 2u);
  EXPECT_EQ(SourceOf("c/d", user, builtin).repository, "c/d");
}

}  // namespace
}  // namespace evald::dataset_fetch
