// Drawn lengths: they follow the file, and only the seed decides them.
#include "orchestrator/simulate/drawn_tasks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "orchestrator/simulate/presets.h"

namespace evald {
namespace {

// A device with one place, on which a token takes a second, in prompts and in answers.
SimCluster Plain() {
  SimCluster cluster;
  cluster.storage_bytes_per_s = cluster.pcie_bytes_per_s = 1;
  cluster.memory_bytes_per_s = 1;
  cluster.flop_per_s = 2;
  return cluster;
}

Workload One(SimDataset dataset) {
  Workload workload;
  workload.model = {1, 1, 0};
  workload.context_limit = 1e9;
  dataset.name = "one";
  workload.datasets.push_back(dataset);
  return workload;
}

SimDataset Generating(Spread own, Spread generated) {
  SimDataset dataset;
  dataset.generates = true;
  dataset.documents = 40'000;
  dataset.own_tokens = own;
  dataset.generated_tokens = generated;
  dataset.max_gen_toks = 1'000'000;
  return dataset;
}

double Mean(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double Percentile(std::vector<float> values, double share) {
  const auto at =
      values.begin() + static_cast<ptrdiff_t>(share * static_cast<double>(values.size()));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// The standard error of the mean is 0.4 % here, and that of the percentile about 1 %.
TEST(Draw, PromptsAndAnswersHaveTheMeanAndThe95thPercentileOfTheFile) {
  const auto prompts = DrawTasks(One(Generating({106.8, 312, 0}, {1, 0, 0})), Plain(), 5);
  EXPECT_NEAR(Mean(prompts[0].place_s) - 1, 106.8, 106.8 * 0.02);
  EXPECT_NEAR(Percentile(prompts[0].place_s, 0.95) - 1, 312, 312 * 0.05);
  const auto answers = DrawTasks(One(Generating({0, 0, 0}, {150, 330, 0})), Plain(), 6);
  EXPECT_NEAR(Mean(answers[0].place_s), 150, 150 * 0.02);
  EXPECT_NEAR(Percentile(answers[0].place_s, 0.95), 330, 330 * 0.05);
}

TEST(Draw, WithoutAPercentileAllAreAlikeAndALimitCutsThemOff) {
  const auto alike = DrawTasks(One(Generating({0, 0, 0}, {150, 0, 0})), Plain(), 1);
  EXPECT_EQ(*std::min_element(alike[0].place_s.begin(), alike[0].place_s.end()), 150);
  EXPECT_EQ(*std::max_element(alike[0].place_s.begin(), alike[0].place_s.end()), 150);
  const auto cut = DrawTasks(One(Generating({0, 0, 0}, {150, 330, 256})), Plain(), 1);
  EXPECT_EQ(*std::max_element(cut[0].place_s.begin(), cut[0].place_s.end()), 256);
}

TEST(Draw, ALogNormalCannotSpreadFurtherThanItDoes) {
  // p95 / mean is at most exp(1.645^2 / 2) = 3.87. Beyond that, the tail is the heaviest possible
  // for this mean.
  const auto tasks = DrawTasks(One(Generating({0, 0, 0}, {100, 600, 0})), Plain(), 1);
  EXPECT_NEAR(Percentile(tasks[0].place_s, 0.95), 387, 387 * 0.1);
}

TEST(Draw, AnExecutorWithoutStopStringsGoesToTheLimit) {
  SimCluster cluster = Plain();
  cluster.stop_strings = false;
  SimDataset dataset = Generating({0, 0, 0}, {150, 330, 512});
  dataset.max_gen_toks = 512;
  const auto tasks = DrawTasks(One(dataset), cluster, 1);
  EXPECT_EQ(*std::min_element(tasks[0].place_s.begin(), tasks[0].place_s.end()), 512);
}

TEST(Draw, EqualSeedsGiveEqualDrawsAndOthersOthers) {
  const Workload workload = One(Generating({106.8, 312, 0}, {150, 330, 0}));
  const auto first = DrawTasks(workload, Plain(), 7), again = DrawTasks(workload, Plain(), 7);
  const auto other = DrawTasks(workload, Plain(), 8);
  EXPECT_EQ(first[0].place_s, again[0].place_s);
  EXPECT_NE(first[0].place_s, other[0].place_s);
}

TEST(Draw, ChoicesCostAForwardEachUnlessTheExecutorKeepsThePrompt) {
  SimDataset dataset;
  dataset.documents = 4;
  dataset.own_tokens = {100, 0, 0};
  dataset.choices = 4;
  dataset.continuation_tokens = 3;
  SimCluster cluster = Plain();
  cluster.share_prefixes = false;
  EXPECT_FLOAT_EQ(DrawTasks(One(dataset), cluster, 1)[0].place_s[0], 4 * 100 + 4 * 3);
  cluster.share_prefixes = true;
  EXPECT_FLOAT_EQ(DrawTasks(One(dataset), cluster, 1)[0].place_s[0], 100 + 4 * 3);
  dataset.continuation_tokens = 1;
  cluster.single_forward = true;
  EXPECT_FLOAT_EQ(DrawTasks(One(dataset), cluster, 1)[0].place_s[0], 100 + 1);
}

TEST(Draw, AGroupsPrefixIsPaidByItsFirstDocument) {
  SimTask task;
  task.documents = 10;
  task.prefix_groups = 3;
  std::vector<int64_t> begins;
  for (int64_t i = 0; i < task.documents; ++i) {
    if (task.begins_group(i)) begins.push_back(i);
  }
  EXPECT_EQ(begins, (std::vector<int64_t>{0, 4, 7})) << "three groups as even as can be";
  task.prefix_groups = 10;
  for (int64_t i = 0; i < task.documents; ++i) EXPECT_TRUE(task.begins_group(i));
  task.prefix_groups = 0;
  EXPECT_FALSE(task.begins_group(0));

  SimDataset dataset;
  dataset.documents = 10;
  dataset.prompt_tokens = 150;
  dataset.prefix_tokens = 100;
  dataset.prefix_groups = 3;
  dataset.own_tokens = {50, 0, 0};
  const auto shared = DrawTasks(One(dataset), Plain(), 1);
  EXPECT_FLOAT_EQ(shared[0].place_s[4] - shared[0].place_s[5], 100);
  SimCluster alone = Plain();
  alone.share_prefixes = false;
  const auto each = DrawTasks(One(dataset), alone, 1);
  EXPECT_FLOAT_EQ(each[0].place_s[5], each[0].place_s[4]);
  EXPECT_FLOAT_EQ(each[0].place_s[5] - shared[0].place_s[5], 100);
}

// The presets. A shared prefix takes its tokens in the file at the cluster's rate, if the executor
// shares prefixes. The first document of each group pays for it. The estimate without a prior says
// the same.
TEST(Draw, ThePresetsPrefixesAreTheirTokensAtTheClustersRate) {
  const Workload workload = ParseWorkload(std::string(PresetWorkloadText()), "acme-7b-63.yaml");
  const SimCluster modern = FindCluster("acme-modern"), old = FindCluster("acme");
  ASSERT_TRUE(modern.share_prefixes);
  ASSERT_FALSE(old.share_prefixes);
  const auto tasks = DrawTasks(workload, modern, 1), alone = DrawTasks(workload, old, 1);
  const auto guesses = GuessedEstimates(workload, modern),
             guessed_alone = GuessedEstimates(workload, old);
  int prefixed = 0;
  for (size_t t = 0; t < tasks.size(); ++t) {
    const SimDataset& dataset = workload.datasets[t];
    const bool shares = dataset.prefix_tokens > 0 && dataset.prefix_groups > 0;
    const double seconds = shares ? dataset.prefix_tokens * 2 * 7.32e9 / 1.25e14 : 0;
    EXPECT_NEAR(tasks[t].prefix_s, seconds, 1e-12) << dataset.name;
    EXPECT_DOUBLE_EQ(TrueEstimate(tasks[t], modern.places).prefix_s, tasks[t].prefix_s)
        << dataset.name;
    EXPECT_DOUBLE_EQ(guesses[t].prefix_s, tasks[t].prefix_s) << dataset.name;
    EXPECT_EQ(alone[t].prefix_s, 0) << dataset.name;
    EXPECT_EQ(TrueEstimate(alone[t], old.places).prefix_s + guessed_alone[t].prefix_s, 0)
        << dataset.name;
    int64_t groups = 0;
    for (int64_t i = 0; i < tasks[t].documents; ++i) groups += tasks[t].begins_group(i) ? 1 : 0;
    EXPECT_EQ(groups, shares ? std::min(dataset.prefix_groups, dataset.documents) : 0)
        << dataset.name;
    prefixed += shares ? 1 : 0;
  }
  EXPECT_EQ(prefixed, 18) << "as many have few-shot prompts alike";
  ASSERT_EQ(tasks[0].name, "mmlu");
  EXPECT_NEAR(tasks[0].prefix_s, 0.0699, 1e-4) << "596.7 tokens";
}

// By hand: 14.64e9 B of weights and 8 caches of 395 tokens at 1.57e12 B/s take 10.38 ms,
// HumanEval's step in docs/simulate.md. With 512 places computing takes longer than reading.
TEST(Draw, AStepTakesTheLongerOfReadingAndComputing) {
  const SimModel model{7.32e9, 14.64e9, 524288};
  SimCluster cluster;
  cluster.memory_bytes_per_s = 1.57e12;
  cluster.flop_per_s = 1.56e14;
  cluster.places = 8;
  EXPECT_NEAR(StepSeconds(model, cluster, 395), 0.01038, 1e-5);
  cluster.places = 512;
  EXPECT_NEAR(StepSeconds(model, cluster, 1), 2 * 7.32e9 * 512 / 1.56e14, 1e-9);
}

}  // namespace
}  // namespace evald
