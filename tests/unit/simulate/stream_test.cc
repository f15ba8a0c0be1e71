// Several checkpoints on the same devices, and a day of a cluster's jobs, against figures by hand.
#include "orchestrator/simulate/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evald/error.h"
#include "orchestrator/simulate/job_day.h"
#include "orchestrator/simulate/presets.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

using ::testing::HasSubstr;

// Staging takes 1 s, a copy to a device 0.1 s.
Scenario TwoDevices() {
  Scenario scenario;
  scenario.workload.model = {1, 10, 0};
  scenario.cluster.devices_per_node = 2;
  scenario.cluster.storage_bytes_per_s = 10;
  scenario.cluster.pcie_bytes_per_s = 100;
  return scenario;
}

// One trial on each device, of 4 and of 8 s. Scoring ends 0.9 s after the devices are free.
ScenarioResult Warm(int checkpoints) {
  SimResult draw;
  draw.makespan_s = 10;
  draw.spans = {{0, "load", 0, 1.1, ""},
                {1, "load", 0, 1.1, ""},
                {0, "generate", 1.1, 5.1, "a"},
                {1, "generate", 1.1, 9.1, "b"}};
  ScenarioResult result;
  result.bounds.resize(static_cast<size_t>(checkpoints));
  result.policies.push_back(
      {"warm", {}, false, std::vector<SimResult>(static_cast<size_t>(checkpoints), draw)});
  return result;
}

TEST(Stream, WithTimeBetweenThemEachTakesWhatItTakesAlone) {
  const StreamReport report = MakeStream(TwoDevices(), Warm(3), 20);
  ASSERT_EQ(report.policies[0].latency_s.size(), 3u);
  for (const double latency : report.policies[0].latency_s) EXPECT_NEAR(latency, 10, 1e-9);
  EXPECT_NEAR(report.policies[0].load, (4.1 + 8.1) / 2 / 20, 1e-9);
  EXPECT_TRUE(report.policies[0].keeps_up());
}

TEST(Stream, ADeviceThatIsFreeTakesTheNextCheckpointAndStagingGoesOnBeside) {
  const StreamReport report = MakeStream(TwoDevices(), Warm(2), 6);
  // The second checkpoint is staged at 7. Its first trial goes to the device that is free at 5.1,
  // its second trial to the one that is free at 9.1: 9.1 + 0.1 + 8 + 0.9 - 6.
  EXPECT_NEAR(report.policies[0].latency_s[1], 12.1, 1e-9);
  EXPECT_NEAR(report.policies[0].load, (4.1 + 8.1) / 2 / 6, 1e-9);
  EXPECT_FALSE(report.policies[0].keeps_up());
}

TEST(Stream, AColdTrialHoldsItsDeviceFromItsStartToItsScores) {
  SimResult draw;
  draw.makespan_s = 15;
  draw.spans = {{0, "generate", 0, 8, "a"}, {0, "start", 0, 2, ""},      {0, "load", 2, 3, ""},
                {0, "score", 8, 9, ""},     {0, "generate", 9, 15, "b"}, {0, "start", 9, 11, ""},
                {0, "load", 11, 12, ""}};
  ScenarioResult result;
  result.bounds.resize(2);
  result.policies.push_back({"cold", {false, false, false, false, false}, false, {draw, draw}});
  Scenario scenario = TwoDevices();
  scenario.cluster.devices_per_node = 1;
  const StreamReport report = MakeStream(scenario, result, 10);
  EXPECT_NEAR(report.policies[0].latency_s[0], 15, 1e-9);
  EXPECT_NEAR(report.policies[0].latency_s[1], 20, 1e-9);
  EXPECT_NEAR(report.policies[0].load, 1.5, 1e-9);
}

TEST(Stream, OfOneCheckpointIsTheSimulationItself) {
  Scenario scenario;
  scenario.workload = ParseWorkload(std::string(PresetWorkloadText()), "preset");
  scenario.cluster = FindCluster("acme-modern");
  scenario.policies = {"coupled", "elastic"};
  scenario.keep_spans = 1;
  const ScenarioResult result = RunScenario(scenario, [](int, int) {});
  const StreamReport report = MakeStream(scenario, result, 1800);
  EXPECT_NEAR(report.policies[0].latency_s[0], result.policies[0].draws[0].makespan_s, 1);
  EXPECT_NEAR(report.policies[1].latency_s[0], result.policies[1].draws[0].makespan_s,
              result.policies[1].draws[0].makespan_s * 0.02);
}

TEST(JobLengths, AreThosePublished) {
  for (const JobLengths& lengths : PublishedJobLengths()) {
    constexpr int kJobs = 100'000;
    double limit = 8;
    for (const double share : lengths.at_most_share) {
      int within = 0;
      for (int i = 0; i < kJobs; ++i)
        within += lengths.Quantile((i + 0.5) / kJobs) <= limit ? 1 : 0;
      EXPECT_NEAR(within / static_cast<double>(kJobs), share, 1e-4) << lengths.name << " " << limit;
      limit *= 2;
    }
    EXPECT_GE(lengths.Quantile(0), 1);
    EXPECT_LE(lengths.Quantile(0.999999), 16384);
  }
}

JobDay ThreeDays() {
  JobDay day;
  day.cluster = FindCluster("acme");
  day.cluster.nodes = 4;
  day.policies = {"coupled", "decoupled-fifo", "elastic"};
  day.days = 3;
  day.weights_bytes = 14.64e9;
  return day;
}

TEST(JobDay, WhatIsTakenApartHoldsDevicesForTheGenerationOnly) {
  const JobDayReport report = SimulateJobDay(ThreeDays());
  ASSERT_EQ(report.clusters.size(), 2u);
  for (const JobDayReport::OfCluster& of : report.clusters) {
    SCOPED_TRACE(of.lengths);
    const JobDayReport::OfPolicy &coupled = of.policies[0], &fifo = of.policies[1],
                                 &elastic = of.policies[2];
    // Checkpoints come at random. Their number is off by a few percent, and the last ends later.
    EXPECT_NEAR(coupled.held_share, 0.85, 0.15);
    EXPECT_NEAR(coupled.generate_share, 0.515, 0.001);
    EXPECT_GT(fifo.generate_share, 0.98);
    EXPECT_GT(elastic.generate_share, 0.98);
    EXPECT_LT(fifo.latency_s.p50, coupled.latency_s.p50);
    EXPECT_LT(elastic.latency_s.p50, fifo.latency_s.p50 / 2) << "long jobs are divided";
  }
  EXPECT_EQ(ToJson(report), ToJson(SimulateJobDay(ThreeDays())));
}

TEST(JobDay, OneJobOnADeviceOfItsOwnTakesItsParts) {
  JobDay day = ThreeDays();
  day.load = 1e-3;
  day.datasets = 1;
  day.days = 2'000;
  const JobDayReport report = SimulateJobDay(day);
  // A coupled job that is alone takes its length and the lease. So do the latencies' percentiles.
  const JobLengths& seren = PublishedJobLengths()[0];
  EXPECT_NEAR(report.clusters[0].policies[0].latency_s.p50, seren.Quantile(0.5),
              seren.Quantile(0.5) * 0.25);
  EXPECT_GT(report.clusters[0].policies[0].latency_s.most, 8192);
  EXPECT_LE(report.clusters[0].policies[0].latency_s.most, 16384.01);
}

TEST(JobDay, APolicyWhosePartsAreNotPublishedIsRefused) {
  JobDay day = ThreeDays();
  day.policies = {"round-robin"};
  const Error e = Caught([&] { SimulateJobDay(day); });
  EXPECT_EQ(e.kind(), ErrorKind::kUsage);
  EXPECT_THAT(e.what(), HasSubstr("coupled, decoupled-fifo, elastic"));
}

}  // namespace
}  // namespace evald
