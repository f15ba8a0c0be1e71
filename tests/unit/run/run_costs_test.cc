#include "orchestrator/run/run_costs.h"

#include <gtest/gtest.h>

#include <cmath>

namespace evald {
namespace {

Suite TwoTasks() {
  Suite suite;
  for (const char* name : {"a", "b"}) {
    SuiteTask& task = suite.tasks.emplace_back();
    task.definition.name = name;
    task.definition.output_type = "generate_until";
    task.prepared = std::string("/cache/prepared/key-of-") + name;
    task.documents = 100;
    task.prepare_s = 0.5;
  }
  return suite;
}

TEST(PartMean, DeviationIsOfThePartsMeans) {
  PartMean mean;
  EXPECT_EQ(mean.deviation(), 0);
  mean.Add(10, 10);  // 1 each
  mean.Add(30, 90);  // 3 each
  EXPECT_DOUBLE_EQ(mean.sum() / mean.documents(), 2.5);
  EXPECT_DOUBLE_EQ(mean.deviation(), std::sqrt((10 * 1.5 * 1.5 + 30 * 0.5 * 0.5) / 40));
}

TEST(RunCosts, SumsByTaskAndKindOfDevice) {
  RunCosts costs;
  costs.SawSlice(0, "gpu", 10, 1000, 100, 2, 0.5);
  costs.SawSlice(0, "gpu", 30, 3000, 300, 10, 0.4);
  costs.SawSlice(0, "cpu", 5, 500, 50, 20, 6);
  costs.SawJob(0, 40, 8);
  const auto measured = costs.Measured(TwoTasks(), {"", "model", 1e9}, 77);
  ASSERT_EQ(measured.size(), 2u) << "nothing was seen of b";
  const TaskCost& gpu = measured[1];
  EXPECT_EQ(gpu.task_key, "key-of-a");
  EXPECT_EQ(gpu.place, (CostPlace{"gpu", "model", 1e9}));
  EXPECT_EQ(gpu.documents, 40);
  EXPECT_EQ(gpu.tokens_out, 400);
  EXPECT_EQ(gpu.device_s, 12);
  EXPECT_EQ(gpu.longest_s, 0.5);
  EXPECT_EQ(gpu.score_s, 8);
  EXPECT_EQ(gpu.ended, 77);
  EXPECT_EQ(measured[0].place.device, "cpu");
}

TEST(RunCosts, SaysHowFarEstimatesWereOff) {
  RunCosts costs;
  Prior a, b;
  a.estimate.device_s = 0.2;
  a.basis = "a guess";
  b.estimate.device_s = 0.1;
  costs.Expect({a, b});
  costs.SawSlice(0, "gpu", 10, 0, 0, 1, 0.1);  // expected 2, measured 1
  costs.SawSlice(1, "gpu", 10, 0, 0, 3, 0.1);  // expected 1, measured 3
  const Json report = costs.Report(TwoTasks());
  EXPECT_DOUBLE_EQ(report["tasks"]["a"]["factor"].get<double>(), 2);
  EXPECT_EQ(report["tasks"]["a"]["basis"], "a guess");
  EXPECT_NEAR(report["tasks"]["b"]["factor"].get<double>(), 1 / 3.0, 1e-12);
  EXPECT_NEAR(report["factor"].get<double>(), std::exp((std::log(2) + 3 * std::log(3)) / 4), 1e-12);
  EXPECT_TRUE(RunCosts().Report(TwoTasks())["factor"].is_null());
}

}  // namespace
}  // namespace evald
