#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/simulate/tiny.h"

namespace evald {
namespace {

// Both devices lease at 15.5 s. At 20 s the second device is lost with its dataset. It has begun
// five documents of the dataset. The first device takes over that dataset when little of its own
// work is left, and computes it from 25.5 s on.
TEST(SimulationFaults, WhatALostNodeHadIsComputedAgain) {
  Simulation::Options options;
  options.policy = "decoupled-fifo";
  options.faults.node_lost_at_s = 20;
  const std::vector<float> seconds(10, 1);
  const SimResult result =
      Simulate(TinyCluster(2), {TinyTask(0, seconds), TinyTask(1, seconds)}, options);
  EXPECT_DOUBLE_EQ(result.makespan_s, 35.5);
  EXPECT_DOUBLE_EQ(result.left_bound_s, 20 + 5.5 + 10);
  EXPECT_EQ(result.documents_again, 5);
  EXPECT_EQ(result.documents_scored, 20);
}

// Two nodes with a slot each score four jobs of four documents, 40 s each, from about 20 s on. One
// node is lost at 30 s, with the job that it has run for ten seconds. The other does all that is
// left.
TEST(SimulationFaults, TheSlotsOfALostNodeAreLostWithIt) {
  Simulation::Options options;
  options.policy = "decoupled-fifo";
  SimTask task = TinyTask(0, std::vector<float>(16, 0), 10);
  task.slow_scoring = true;
  EXPECT_DOUBLE_EQ(Simulate(TinyCluster(2), {task}, options).makespan_s, 15.5 + 2 * 40);
  options.faults.node_lost_at_s = 30;
  const SimResult result = Simulate(TinyCluster(2), {task}, options);
  EXPECT_EQ(result.documents_scored, 16);
  EXPECT_DOUBLE_EQ(result.makespan_s, 15.5 + 4 * 40);
}

// The node has generated and is scoring. The scores are lost with the node.
TEST(SimulationFaults, ACoupledNodeIsLostWhileItScores) {
  Simulation::Options options;
  options.policy = "coupled";
  options.faults.node_lost_at_s = 25;
  const SimResult result =
      Simulate(TinyCluster(2), {TinyTask(0, {1, 1}, 10), TinyTask(1, {1, 1}, 10)}, options);
  EXPECT_EQ(result.documents_scored, 4);
  EXPECT_DOUBLE_EQ(result.makespan_s, 2 * (5 + 10 + 3 + 0.5 + 2 + 20));
}

TEST(SimulationFaults, ANodeIsLostBeforeItHasAnything) {
  for (const std::string& policy : PolicyNames()) {
    Simulation::Options options;
    options.policy = policy;
    options.faults.node_lost_at_s = 2;
    const SimResult result =
        Simulate(TinyCluster(2, 2), {TinyTask(0, {1, 1, 1}), TinyTask(1, {1})}, options);
    EXPECT_EQ(result.documents_scored, 4) << policy;
    EXPECT_EQ(result.documents_again, 0) << policy;
  }
}

// For any policy, tasks, estimates and faults.
TEST(SimulationFaults, EveryDocumentIsScoredOnceAndNothingIsFasterThanTheBound) {
  int64_t doubled = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
    SimCluster cluster = TinyCluster(2 + below(3), 1 + below(3));
    cluster.places = 1 + below(6);
    cluster.score_slots_per_node = 1 + below(4);
    cluster.lease_s = below(2) * 0.005;
    std::vector<SimTask> tasks;
    std::vector<TaskEstimate> estimates;
    int64_t documents = 0;
    for (int t = 0; t < below(12); ++t) {
      std::vector<float> seconds(static_cast<size_t>(below(3) == 0 ? below(600) : below(20)));
      for (float& each : seconds)
        each = static_cast<float>(below(20) == 0 ? 50 : below(100) * 0.02);
      tasks.push_back(TinyTask(t / 2, seconds, below(2) * 0.3));
      tasks.back().slow_scoring = below(3) == 0;
      documents += tasks.back().documents;
      estimates.push_back(TrueEstimate(tasks.back(), cluster.places));
      const double wrong[] = {0, 0.2, 1, 1, 5};
      estimates.back().device_s *= wrong[below(5)];
      estimates.back().score_s *= wrong[below(5)];
    }
    for (const std::string& policy : PolicyNames()) {
      SCOPED_TRACE(fmt::format("seed {}, {}", seed, policy));
      Simulation::Options options;
      options.policy = policy;
      options.seed = seed;
      options.faults.trial_failure_rate = below(3) * 0.2;
      if (below(2) == 0) options.faults.node_lost_at_s = below(80);
      if (below(2) == 0) options.faults.slow_device = 1 + below(30);
      const SimResult result = Simulation(cluster, kTinyWeights, tasks, estimates, options).Run();
      ASSERT_EQ(result.documents_scored, documents);
      if (documents == 0) continue;
      ASSERT_GE(result.makespan_s, result.bound_s(cluster) * (1 - 1e-9));
      doubled += result.trials_backed_up;
      for (size_t t = 0; t < tasks.size(); ++t)
        ASSERT_LE(result.task_scored_s[t], result.makespan_s);
      ASSERT_GE(result.idle_share, 0);
      ASSERT_LE(result.idle_share, 1);
    }
  }
  EXPECT_GT(doubled, 50) << "late trials are computed twice";
}

TEST(SimulationFaults, EqualSeedsGiveEqualResults) {
  const std::vector<SimTask> tasks = {TinyTask(0, std::vector<float>(900, 0.3F), 0.1),
                                      TinyTask(1, std::vector<float>(50, 9))};
  Simulation::Options options;
  options.policy = "elastic";
  options.faults = {0.2, 40};
  const SimResult a = Simulate(TinyCluster(3, 2), tasks, options),
                  b = Simulate(TinyCluster(3, 2), tasks, options);
  EXPECT_GT(a.trials_failed, 0);
  EXPECT_EQ(a.makespan_s, b.makespan_s);
  EXPECT_EQ(a.trials, b.trials);
  EXPECT_EQ(a.documents_again, b.documents_again);
}

}  // namespace
}  // namespace evald
