// Nodes that get the checkpoint over one link, or from one another, when the fleet orders it: 10 s
// from storage, 2 s from another node, 5 s over PCIe.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orchestrator/simulate/bound.h"
#include "orchestrator/simulate/simulation.h"
#include "tests/unit/simulate/tiny.h"

namespace evald {
namespace {

using ::testing::ElementsAre;

constexpr double kWeights = 10e9;

SimCluster Staged(SimStaging staging, int nodes, int devices_per_node = 1) {
  SimCluster cluster = TinyCluster(nodes, devices_per_node);
  cluster.staging = staging;
  cluster.storage_bytes_per_s = 1e9;
  cluster.pcie_bytes_per_s = 2e9;
  cluster.node_bytes_per_s = 5e9;
  cluster.hop_s = 0.25;
  cluster.lease_s = 0.005;
  return cluster;
}

SimResult Elastic(const SimCluster& cluster, const std::vector<SimTask>& tasks,
                  const SimFaults& faults = {}) {
  Simulation::Options options;
  options.policy = "elastic";
  options.faults = faults;
  std::vector<TaskEstimate> estimates;
  for (const SimTask& task : tasks) estimates.push_back(TrueEstimate(task, cluster.places));
  return Simulation(cluster, kWeights, tasks, estimates, std::move(options)).Run();
}

TEST(StagedTimes, FollowTheWayToTheNodes) {
  EXPECT_THAT(StagedTimes(Staged(SimStaging::kEach, 3), kWeights), ElementsAre(10, 10, 10));
  EXPECT_THAT(StagedTimes(Staged(SimStaging::kLink, 3), kWeights), ElementsAre(10, 20, 30));
  EXPECT_THAT(StagedTimes(Staged(SimStaging::kTree, 5), kWeights),
              ElementsAre(10, 12.25, 12.25, 12.5, 12.5));
}

TEST(WorkEnd, CountsADeviceFromWhenItCanBegin) {
  EXPECT_DOUBLE_EQ(WorkEnd({0, 0}, {4, 4}, 80), 10);
  EXPECT_DOUBLE_EQ(WorkEnd({0, 10, 20}, {4, 4, 4}, 20), 5) << "the first is through by then";
  EXPECT_DOUBLE_EQ(WorkEnd({0, 10, 20}, {4, 4, 4}, 80), 15);
  EXPECT_DOUBLE_EQ(WorkEnd({0, 10, 20}, {4, 4, 1}, 129), 21);
}

TEST(PlacesEnd, LongRequestsFillPlacesOneAfterAnother) {
  EXPECT_NEAR(PlacesEnd({0}, 2, {{100, 1}}), 100, 1e-3);
  EXPECT_NEAR(PlacesEnd({0}, 2, {{100, 3}}), 200, 1e-3);
  EXPECT_NEAR(PlacesEnd({0, 30}, 2, {{100, 1}, {90, 3}}), 120, 1e-3) << "one on the second node";
  EXPECT_EQ(PlacesEnd({0}, 2, {}), 0);
}

TEST(PlacementSimulation, OverOneLinkNodesGetTheCheckpointInTurn) {
  const SimCluster cluster = Staged(SimStaging::kLink, 3);
  const SimResult result = Elastic(cluster, {TinyTask(0, std::vector<float>(300, 1))});
  EXPECT_EQ(result.documents_scored, 300);
  EXPECT_EQ(result.nodes_staged, 3);
  // 10, 20 and then 40 s, since the last one begins while the second pulls
  EXPECT_GE(result.makespan_s, result.bound_s(cluster));
  EXPECT_LE(result.makespan_s, 1.05 * (100 + 20 + 5)) << result.makespan_s;
}

TEST(PlacementSimulation, NoNodeGetsACheckpointForWhatOthersEndSooner) {
  const SimCluster cluster = Staged(SimStaging::kLink, 8, 4);
  const SimResult small = Elastic(cluster, {TinyTask(0, std::vector<float>(40, 1))});
  EXPECT_EQ(small.nodes_staged, 1);
  EXPECT_NEAR(small.makespan_s, 15 + 10, 0.5);
  const SimResult large =
      Elastic(Staged(SimStaging::kLink, 16, 4), {TinyTask(0, std::vector<float>(800, 1))});
  EXPECT_GT(large.nodes_staged, 2);
  EXPECT_LT(large.nodes_staged, 10) << "the last would get it when all is done";
}

TEST(PlacementSimulation, ATreeTakesOneCopyAndAHopForEachLevel) {
  const SimCluster cluster = Staged(SimStaging::kTree, 15);
  const SimResult result = Elastic(cluster, {TinyTask(0, std::vector<float>(3000, 1))});
  EXPECT_EQ(result.nodes_staged, 15);
  EXPECT_NEAR(result.weights_in_s, 10 + 2 + 3 * 0.25 + 5, 1e-6);
  EXPECT_LE(result.makespan_s, 1.05 * result.bound_s(cluster) + 5) << "and a pull";
}

TEST(PlacementSimulation, ALostNodeFreesTheLink) {
  const SimCluster cluster = Staged(SimStaging::kLink, 2);
  SimFaults faults;
  faults.node_lost_at_s = 15;  // on its way
  const SimResult result = Elastic(cluster, {TinyTask(0, std::vector<float>(100, 1))}, faults);
  EXPECT_EQ(result.documents_scored, 100);
  EXPECT_EQ(result.nodes_staged, 1);
  EXPECT_NEAR(result.makespan_s, 15 + 100, 1.5);
}

TEST(PlacementSimulation, ASlowNodeGetsLess) {
  const SimCluster cluster = Staged(SimStaging::kTree, 4, 2);
  SimFaults faults;
  faults.slow_node = 4;
  const SimResult result = Elastic(cluster, {TinyTask(0, std::vector<float>(2000, 0.5F))}, faults);
  EXPECT_EQ(result.documents_scored, 2000);
  EXPECT_GE(result.makespan_s, result.left_bound_s);
  EXPECT_LE(result.makespan_s, 1.05 * result.left_bound_s + 5);
}

}  // namespace
}  // namespace evald
