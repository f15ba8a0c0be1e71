// Simulations worked out by hand. tiny.h gives the times.

#include "orchestrator/simulate/simulation.h"

#include <gtest/gtest.h>

#include "tests/unit/simulate/tiny.h"

namespace evald {
namespace {

// Staged at 10 s and pulled at 15 s, leased at 15.5 s.
TEST(Simulation, OneDeviceOnePlace) {
  const SimResult result = Simulate(TinyCluster(), {TinyTask(0, {1, 1, 1, 1})}, "decoupled-fifo");
  EXPECT_DOUBLE_EQ(result.makespan_s, 19.5);
  EXPECT_DOUBLE_EQ(result.weights_in_s, 15);
  EXPECT_DOUBLE_EQ(result.device_work_s, 4);
  EXPECT_DOUBLE_EQ(result.stage_s, 10);
  EXPECT_DOUBLE_EQ(result.bound_s(TinyCluster()), 14);
  EXPECT_DOUBLE_EQ(result.idle_share, 1 - 4 / 4.5);
  EXPECT_EQ(result.trials, 1);
  EXPECT_EQ(result.documents_scored, 4);
  EXPECT_EQ(result.documents_again, 0);
  EXPECT_DOUBLE_EQ(result.task_scored_s[0], 19.5);
}

// Start, load from storage, prepare, lease, generate, score.
TEST(Simulation, CoupledDoesEverythingInTurn) {
  const SimResult result = Simulate(TinyCluster(), {TinyTask(0, {1, 1, 1, 1}, 0.25)}, "coupled");
  EXPECT_DOUBLE_EQ(result.makespan_s, 5 + 10 + 3 + 0.5 + 4 + 1);
  EXPECT_DOUBLE_EQ(result.lost_shares.at("start"), 5 / 23.5);
  EXPECT_DOUBLE_EQ(result.lost_shares.at("load"), 10 / 23.5);
  EXPECT_DOUBLE_EQ(result.lost_shares.at("prepare"), 3 / 23.5);
  EXPECT_DOUBLE_EQ(result.lost_shares.at("score"), 1 / 23.5);
}

TEST(Simulation, CoupledStartsAndLoadsForEachDataset) {
  const SimResult result = Simulate(TinyCluster(), {TinyTask(0, {1}), TinyTask(1, {2})}, "coupled");
  EXPECT_DOUBLE_EQ(result.makespan_s, 2 * 18.5 + 1 + 2);
  EXPECT_EQ(result.trials, 2);
}

// Staged once, then each trial starts and pulls.
TEST(Simulation, StagedAndCoupled) {
  const SimResult result =
      Simulate(TinyCluster(), {TinyTask(0, {1, 1, 1, 1}, 0.25)}, "coupled+staged");
  EXPECT_DOUBLE_EQ(result.makespan_s, 10 + 5 + 5 + 3 + 0.5 + 4 + 1);
}

TEST(Simulation, DevicesOfANodeShareItsStorage) {
  const std::vector<SimTask> tasks = {TinyTask(0, {4}), TinyTask(1, {4})};
  EXPECT_DOUBLE_EQ(Simulate(TinyCluster(1, 2), tasks, "coupled").makespan_s, 5 + 20 + 3 + 0.5 + 4);
  EXPECT_DOUBLE_EQ(Simulate(TinyCluster(2, 1), tasks, "coupled").makespan_s, 5 + 10 + 3 + 0.5 + 4);
}

TEST(Simulation, PlacesComputeSideBySide) {
  SimCluster cluster = TinyCluster();
  cluster.places = 2;
  const SimResult result = Simulate(cluster, {TinyTask(0, {1, 1, 1, 1, 3})}, "decoupled-fifo");
  EXPECT_DOUBLE_EQ(result.makespan_s, 15.5 + 5);
  EXPECT_DOUBLE_EQ(result.device_work_s, 3.5);
  EXPECT_DOUBLE_EQ(result.longest_request_s, 3);
}

TEST(Simulation, ScoringBehindTheLastGeneration) {
  SimCluster cluster = TinyCluster();
  SimTask task = TinyTask(0, std::vector<float>(8, 1), 10);
  task.slow_scoring = true;  // gives jobs of four documents
  EXPECT_DOUBLE_EQ(Simulate(cluster, {task}, "decoupled-fifo").makespan_s, 15.5 + 8 + 80);
  cluster.score_slots_per_node = 2;
  EXPECT_DOUBLE_EQ(Simulate(cluster, {task}, "decoupled-fifo").makespan_s, 15.5 + 8 + 40);
  EXPECT_DOUBLE_EQ(Simulate(cluster, {task}, "decoupled-fifo").bound_s(cluster), 10 + 1 + 40);
}

// Slices of 256 documents are scored while the next are generated.
TEST(Simulation, ScoringBesideGeneration) {
  SimTask task = TinyTask(0, std::vector<float>(512, 1), 1);
  EXPECT_DOUBLE_EQ(Simulate(TinyCluster(), {task}, "decoupled-fifo").makespan_s, 15.5 + 512 + 256);
}

TEST(Simulation, APrefixIsComputedAgainWhereAGroupIsCut) {
  SimTask task = TinyTask(0, std::vector<float>(300, 1));
  task.prefix_groups = 1;
  task.prefix_s = 7;
  task.place_s[0] += 7;
  EXPECT_DOUBLE_EQ(Simulate(TinyCluster(), {task}, "decoupled-fifo").makespan_s, 15.5 + 307)
      << "one trial";
  // Four parts. Three of them compute the prefix again, each with an engine of its own.
  const SimResult parts = Simulate(TinyCluster(), {task}, "round-robin");
  EXPECT_EQ(parts.trials, 4);
  EXPECT_NEAR(parts.makespan_s, 10 + 4 * (5 + 5 + 3 + 0.5) + 307 + 3 * 7, 1e-9);
}

// Each of eight devices, with one place each, has a prefix of 20 s and 150 s of documents. With
// trials of 15 s each device would compute the prefix ten times, and take 2.3 times as long as for
// the documents alone.
TEST(Simulation, APrefixDearerThanATrialIsNotComputedAgainAndAgain) {
  SimCluster cluster = TinyCluster(1, 8);
  cluster.lease_s = 0.005;
  SimTask task = TinyTask(0, std::vector<float>(2400, 0.5F));
  task.prefix_groups = 1;
  task.prefix_s = 20;
  task.place_s[0] += 20;
  const SimResult result = Simulate(cluster, {task}, "elastic");
  EXPECT_EQ(result.documents_scored, 2400);
  EXPECT_GE(result.makespan_s, 15 + 150 + 20) << "each computes it once";
  EXPECT_LE(result.makespan_s, 15 + 1.5 * (150 + 20));
}

TEST(Simulation, TwoDevicesEndTogether) {
  SimCluster cluster = TinyCluster(1, 2);
  cluster.lease_s = 0.005;
  const SimResult result = Simulate(cluster, {TinyTask(0, std::vector<float>(101, 1))}, "elastic");
  EXPECT_GE(result.makespan_s, 15 + 51);
  EXPECT_LT(result.makespan_s, 15 + 51.1);
  EXPECT_LT(result.idle_share, 0.012) << "half of one document in 51";
}

// Tasks that were believed to be short take long. Idle devices take work from busy ones.
TEST(Simulation, IdleDevicesTakeFromStragglers) {
  SimCluster cluster = TinyCluster(1, 4);
  cluster.lease_s = 0.005;
  const std::vector<SimTask> tasks = {TinyTask(0, std::vector<float>(64, 4))};
  TaskEstimate estimate = TrueEstimate(tasks[0], 1);
  estimate.device_s = 0.001;
  Simulation::Options options;
  options.policy = "elastic";
  const SimResult result = Simulation(cluster, kTinyWeights, tasks, {estimate}, options).Run();
  EXPECT_EQ(result.documents_scored, 64);
  EXPECT_LT(result.makespan_s, 15 + 64 + 8);
  EXPECT_GE(result.makespan_s, 15 + 64);
}

// The first of four devices takes ten times as long as it says. It has begun two documents of a
// minute, and would take ten minutes for them. The others are done with 24 documents after four
// minutes, and compute those two again.
TEST(Simulation, WhatASlowDeviceHasBegunIsComputedByAnother) {
  SimCluster cluster = TinyCluster(1, 4);
  cluster.places = 2;
  cluster.lease_s = 0.005;
  Simulation::Options options;
  options.policy = "elastic";
  options.faults.slow_device = 10;
  const SimResult result =
      Simulate(cluster, {TinyTask(0, std::vector<float>(26, 60), 0.1)}, options);
  EXPECT_EQ(result.documents_scored, 26);
  EXPECT_GE(result.trials_backed_up, 1);
  EXPECT_GE(result.documents_again, 1);
  EXPECT_GE(result.makespan_s, result.bound_s(cluster));
  EXPECT_LT(result.makespan_s, 15 + 5 * 60 + 10)
      << "it would take 600 s over the first that it begins";
  options.faults.slow_device = 1;
  const SimResult even = Simulate(cluster, {TinyTask(0, std::vector<float>(26, 60), 0.1)}, options);
  EXPECT_EQ(even.trials_backed_up, 0);
  EXPECT_EQ(even.documents_again, 0);
}

// A device whose places are all taken would only keep stolen work, and lose it again, forever.
TEST(Simulation, WhoHasNoPlaceFreeTakesNothing) {
  SimCluster cluster = TinyCluster(1, 2);
  cluster.places = 2;
  cluster.lease_s = 0.005;
  const SimResult result = Simulate(cluster, {TinyTask(0, std::vector<float>(7, 100))}, "elastic");
  EXPECT_EQ(result.documents_scored, 7);
  EXPECT_NEAR(result.makespan_s, 15 + 200, 1);
  EXPECT_LT(result.trials, 20);
}

// Two tasks. The one that was believed to have short requests has long ones. A few of its requests
// are tried at the start and are late, so the rest of them does not come last.
TEST(Simulation, ARequestThatIsLateTellsSoBeforeItEnds) {
  SimCluster cluster = TinyCluster(1, 4);
  cluster.places = 4;
  cluster.lease_s = 0.005;
  const std::vector<SimTask> tasks = {TinyTask(0, std::vector<float>(400, 8)),
                                      TinyTask(1, std::vector<float>(16, 150))};
  std::vector<TaskEstimate> estimates = {TrueEstimate(tasks[0], 4), TrueEstimate(tasks[1], 4)};
  estimates[0].request_s = 30;
  estimates[1].request_s = 20;
  estimates[1].device_s = 5;
  Simulation::Options options;
  options.policy = "elastic";
  const SimResult result = Simulation(cluster, kTinyWeights, tasks, estimates, options).Run();
  EXPECT_EQ(result.documents_scored, 416);
  EXPECT_DOUBLE_EQ(result.device_work_s, 1400);
  EXPECT_LT(result.makespan_s, 15 + 350 * 1.1) << "without, the last would begin at 200 s and more";
}

TEST(Simulation, EstimatesOfNothingEndAllTheSame) {
  SimCluster cluster = TinyCluster(2, 2);
  std::vector<SimTask> tasks = {TinyTask(0, std::vector<float>(40, 1), 1), TinyTask(1, {}),
                                TinyTask(2, {0, 0, 0})};
  std::vector<TaskEstimate> estimates;
  for (const SimTask& task : tasks) {
    estimates.push_back(TrueEstimate(task, 1));
    estimates.back().device_s = estimates.back().request_s = estimates.back().score_s = 0;
  }
  for (const std::string& policy : PolicyNames()) {
    Simulation::Options options;
    options.policy = policy;
    const SimResult result = Simulation(cluster, kTinyWeights, tasks, estimates, options).Run();
    EXPECT_EQ(result.documents_scored, 43) << policy;
  }
}

TEST(Simulation, NothingToDo) {
  for (const std::string& policy : PolicyNames()) {
    const SimResult result = Simulate(TinyCluster(2, 2), {}, policy);
    EXPECT_EQ(result.makespan_s, 0) << policy;
    EXPECT_EQ(result.trials, 0) << policy;
  }
}

TEST(Simulation, SpansAddUp) {
  Simulation::Options options;
  options.policy = "coupled";
  options.keep_spans = true;
  const SimResult result = Simulate(TinyCluster(), {TinyTask(0, {1, 1}, 0.5)}, options);
  double seconds = 0;
  for (const SimSpan& span : result.spans) {
    if (std::string(span.name) != "generate") seconds += span.end - span.begin;
  }
  EXPECT_DOUBLE_EQ(seconds, 5 + 10 + 3 + 1);
}

}  // namespace
}  // namespace evald
