#include "orchestrator/state/prior_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orchestrator/state/run_store.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

using testing::HasSubstr;

TaskCost Ran(const std::string& task, double ended) {
  TaskCost cost;
  cost.task = task;
  cost.task_key = "k" + task;
  cost.place = {"gpu", "m", 14e9};
  cost.generates = true;
  cost.ended = ended;
  cost.prepare_s = 0.5;
  cost.documents = 7;
  cost.tokens_in = 700;
  cost.tokens_out = 70;
  cost.device_s = 3.25;
  cost.device_deviation_s = 0.125;
  cost.longest_s = 1.5;
  cost.scored = 6;
  cost.score_s = 0.75;
  cost.score_deviation_s = 0.0625;
  return cost;
}

TEST(PriorStore, TheNewestRunsOfATaskAreKept) {
  TemporaryFolder scratch;
  {
    RunStore store(scratch.path());
    for (int i = 0; i < 20; ++i) prior_store::Add(store.database(), Ran("a", i));
    prior_store::Add(store.database(), Ran("b", 5));
  }
  RunStore store(scratch.path());
  const std::vector<TaskCost> all = prior_store::All(store.database());
  ASSERT_EQ(all.size(), 9u);
  EXPECT_EQ(all.front().ended, 19);
  EXPECT_EQ(all[7].ended, 12);
  EXPECT_EQ(all[8].task, "b");
}

TEST(PriorStore, ADamagedRowIsPassedOver) {
  TemporaryFolder scratch;
  RunStore store(scratch.path());
  for (const char* task : {"a", "b", "c", "d"}) prior_store::Add(store.database(), Ran(task, 1));
  for (const auto& [key, damaged] :
       {std::pair("ka", "x"), std::pair("kb", "-1"), std::pair("kc", R"({"task": 5})")}) {
    store.database()
        .Prepare("UPDATE costs SET cost = ? WHERE task_key = ?")
        .Bind(damaged)
        .Bind(key)
        .Run();
  }
  const std::vector<TaskCost> all = prior_store::All(store.database());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].task, "d");
}

TEST(PriorStore, ExportAndImportKeepEveryMember) {
  const Json json = prior_store::ToJson({Ran("a", 3), Ran("b", 4)});
  const std::vector<TaskCost> back = prior_store::FromJson(Json::parse(json.dump()), "priors.json");
  EXPECT_EQ(prior_store::ToJson(back), json);
  for (const auto& [member, value] : json["costs"][0].items()) {  // no member has its default
    EXPECT_FALSE(value == Json(0) || value == Json("") || value == Json(false)) << member;
  }
}

TEST(PriorStore, WhatIsNotOfTheFormIsNamed) {
  const auto refusal = [](const Json& json) {
    return CaughtText([&] { prior_store::FromJson(json, "priors.json"); });
  };
  Json json = prior_store::ToJson({Ran("a", 3), Ran("b", 4)});
  EXPECT_EQ(refusal(json), "");
  json["costs"][1]["device_s"] = -1;
  EXPECT_THAT(refusal(json), HasSubstr("priors.json: costs[1]: device_s: found -1"));
  json["costs"][1].erase("device_s");
  EXPECT_THAT(refusal(json), HasSubstr("priors.json: costs[1]: the key 'device_s' is absent"));
  EXPECT_THAT(refusal(Json::parse(R"({"schema": "evald-priors/1", "costs": 3})")),
              HasSubstr("expected an array"));
  EXPECT_THAT(refusal(Json::parse(R"({"schema": "x", "costs": []})")),
              HasSubstr("found 'x', expected 'evald-priors/1'"));
}

}  // namespace
}  // namespace evald
