// The bounds against the best of all schedules, which small instances allow to try.
#include "orchestrator/simulate/bound.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>

#include "tests/unit/simulate/tiny.h"

namespace evald {
namespace {

// Places by the time at which each begins.
std::vector<double> PlacesOf(const SimCluster& cluster) {
  std::vector<double> free_at;
  for (const double time : StagedTimes(cluster, kTinyWeights))
    free_at.insert(free_at.end(), static_cast<size_t>(cluster.devices_per_node * cluster.places),
                   time);
  return free_at;
}

// The end if each document, in this order, takes the place that is free first. No schedule that
// begins the documents in this order ends sooner.
double ListEnd(std::vector<double> free_at, const std::vector<float>& documents) {
  double end = 0;
  for (const float seconds : documents) {
    double& first = *std::min_element(free_at.begin(), free_at.end());
    first += seconds;
    end = std::max(end, first);
  }
  return end;
}

// Tries all orders of all documents.
double BestEnd(const SimCluster& cluster, const std::vector<SimTask>& tasks) {
  std::vector<float> documents;
  for (const SimTask& task : tasks)
    documents.insert(documents.end(), task.place_s.begin(), task.place_s.end());
  std::sort(documents.begin(), documents.end());
  double best = std::numeric_limits<double>::infinity();
  do {
    best = std::min(best, ListEnd(PlacesOf(cluster), documents));
  } while (std::next_permutation(documents.begin(), documents.end()));
  return best;
}

// Tries all orders in which the documents of each task keep theirs.
double BestEndInOrder(const SimCluster& cluster, const std::vector<SimTask>& tasks) {
  std::vector<size_t> from;  // the task of each document
  for (size_t t = 0; t < tasks.size(); ++t) from.insert(from.end(), tasks[t].place_s.size(), t);
  double best = std::numeric_limits<double>::infinity();
  do {
    std::vector<size_t> next(tasks.size(), 0);
    std::vector<float> documents;
    for (const size_t t : from) documents.push_back(tasks[t].place_s[next[t]++]);
    best = std::min(best, ListEnd(PlacesOf(cluster), documents));
  } while (std::next_permutation(from.begin(), from.end()));
  return best;
}

struct Instance {
  SimCluster cluster;
  std::vector<SimTask> tasks;
};

Instance Drawn(uint64_t seed, int tasks) {
  std::mt19937_64 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  Instance drawn{TinyCluster(1 + below(3)), {}};
  drawn.cluster.places = 1 + below(2);
  drawn.cluster.staging =
      std::vector{SimStaging::kEach, SimStaging::kLink, SimStaging::kTree}[below(3)];
  drawn.cluster.node_bytes_per_s = 5;
  drawn.cluster.hop_s = 0.25;
  drawn.cluster.storage_bytes_per_s = 1 + below(8);
  for (int t = 0; t < tasks; ++t) {
    std::vector<float> seconds(static_cast<size_t>(1 + below(6 / tasks)));
    for (float& each : seconds) each = static_cast<float>(1 + below(below(2) == 0 ? 40 : 4));
    drawn.tasks.push_back(TinyTask(t, seconds));
  }
  return drawn;
}

TEST(Bound, NoScheduleIsFasterAndTheBestIsOftenClose) {
  int close = 0;
  constexpr int kInstances = 400;
  for (uint64_t seed = 0; seed < kInstances; ++seed) {
    SCOPED_TRACE(seed);
    const Instance of = Drawn(seed, 1 + static_cast<int>(seed % 3));
    const SimBound bound = BoundOf(of.tasks, of.cluster, kTinyWeights);
    const double best = BestEnd(of.cluster, of.tasks);
    ASSERT_LE(bound.total_s(), best * (1 + 1e-6));
    close += bound.total_s() >= 0.95 * best ? 1 : 0;
  }
  EXPECT_GT(close, kInstances / 2);
}

TEST(Bound, NoScheduleThatKeepsTheOrderOfEachTaskIsFaster) {
  int close = 0, more = 0;
  constexpr int kInstances = 400;
  for (uint64_t seed = 0; seed < kInstances; ++seed) {
    SCOPED_TRACE(seed);
    const Instance of = Drawn(seed, 1 + static_cast<int>(seed % 3));
    const SimBound bound = BoundOf(of.tasks, of.cluster, kTinyWeights);
    const double best = BestEndInOrder(of.cluster, of.tasks);
    ASSERT_LE(bound.unknowing_s(), best * (1 + 1e-6));
    if (of.tasks.size() == 1) {
      ASSERT_NEAR(bound.unknowing_s(), best, 1e-4) << "the best is known";
    }
    close += bound.unknowing_s() >= 0.95 * best ? 1 : 0;
    more += bound.unknowing_s() > bound.total_s() * 1.01 ? 1 : 0;
  }
  EXPECT_GT(close, kInstances / 2);
  EXPECT_GT(more, kInstances / 20);
}

TEST(InOrderEnd, EachDocumentTakesThePlaceThatIsFreeFirst) {
  EXPECT_DOUBLE_EQ(InOrderEnd({0}, 2, {1, 2, 10}), 11);
  EXPECT_DOUBLE_EQ(InOrderEnd({0, 5}, 1, {10, 10}), 15) << "the second node begins later";
  EXPECT_DOUBLE_EQ(InOrderEnd({0, 5}, 1, {3, 10}), 13) << "and is not needed";
  EXPECT_DOUBLE_EQ(InOrderEnd({0}, 2, {}), 0);
}

// Whatever the schedule does, the document that a task begins as its k-th is any of them.
TEST(InOrderEnd, ALongDocumentBeginsLateIfNobodyKnowsThatItIsLong) {
  const SimCluster cluster = TinyCluster();
  const std::vector<SimTask> tasks = {TinyTask(0, {5, 5, 5, 20})};
  const SimBound bound = BoundOf(tasks, cluster, kTinyWeights);
  EXPECT_DOUBLE_EQ(bound.total_s(), bound.unknowing_s()) << "with one place the order is no matter";
  SimCluster wide = cluster;
  wide.places = 2;
  EXPECT_DOUBLE_EQ(BoundOf(tasks, wide, kTinyWeights).unknowing_s(), 10 + 5 + 20);
  EXPECT_NEAR(BoundOf(tasks, wide, kTinyWeights).total_s(), 10 + 20, 0.01);
}

}  // namespace
}  // namespace evald
