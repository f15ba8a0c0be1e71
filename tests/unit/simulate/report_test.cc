// Reports of simulations: percentiles, tables, pictures and traces.
#include "orchestrator/simulate/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/regex.h"
#include "orchestrator/simulate/gantt.h"
#include "orchestrator/simulate/presets.h"
#include "orchestrator/simulate/spans.h"
#include "orchestrator/simulate/trace.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

using ::testing::HasSubstr;

SimDataset Dataset(int number, const std::string& name, int64_t documents, double tokens,
                   double score_s) {
  SimDataset dataset;
  dataset.dataset = number;
  dataset.name = name;
  dataset.generates = true;
  dataset.documents = documents;
  dataset.generated_tokens = {tokens, 2 * tokens, 0};
  dataset.max_gen_toks = static_cast<int64_t>(8 * tokens);
  dataset.score_s = score_s;
  dataset.slow_scoring = score_s > 0.1;
  return dataset;
}

// Datasets of very different sizes on two nodes of two devices.
Scenario Small() {
  Scenario scenario;
  scenario.workload.name = "small & odd";
  scenario.workload.model = {1e9, 1e9, 0};
  scenario.workload.context_limit = 1e9;
  for (int i = 0; i < 12; ++i) {
    scenario.workload.datasets.push_back(Dataset(i, "d" + std::to_string(i), 40 + 60 * (i % 5),
                                                 20 + 30 * (i % 3), i == 4 ? 0.5 : 0.001));
  }
  SimCluster& cluster = scenario.cluster;
  cluster.name = "two";
  cluster.nodes = cluster.devices_per_node = 2;
  cluster.storage_bytes_per_s = 1e9;
  cluster.pcie_bytes_per_s = 1e10;
  cluster.memory_bytes_per_s = 1e11;
  cluster.flop_per_s = 1e13;
  cluster.places = 4;
  cluster.score_slots_per_node = 4;
  cluster.start_s = 4;
  cluster.prepare_s = 2;
  cluster.lease_s = 0.005;
  scenario.policies = PolicyNames();
  return scenario;
}

ScenarioResult Simulated(const Scenario& scenario) {
  return RunScenario(scenario, [](int, int) {});
}

TEST(Summary, InterpolatesBetweenTheTwoNearest) {
  const SimSpreadOver of = Summarise({5, 1, 4, 2, 3});
  EXPECT_DOUBLE_EQ(of.least, 1);
  EXPECT_DOUBLE_EQ(of.p5, 1.2);
  EXPECT_DOUBLE_EQ(of.p50, 3);
  EXPECT_DOUBLE_EQ(of.p95, 4.8);
  EXPECT_DOUBLE_EQ(of.most, 5);
  EXPECT_DOUBLE_EQ(Summarise({7}).p5, 7);
}

TEST(RunScenario, EqualSeedsGiveEqualResultsWhateverTheThreads) {
  Scenario scenario = Small();
  scenario.draws = 4;
  scenario.prior_error = 3;
  scenario.trial_failure_rate = 0.05;
  const std::string alone = ToJson(MakeReport(scenario, Simulated(scenario))).dump();
  scenario.threads = 3;
  EXPECT_EQ(ToJson(MakeReport(scenario, Simulated(scenario))).dump(), alone);
  scenario.seed = 2;
  EXPECT_NE(ToJson(MakeReport(scenario, Simulated(scenario))).dump(), alone);
}

TEST(RunScenario, EveryDocumentIsScoredAndNothingBeatsTheBound) {
  Scenario scenario = Small();
  scenario.draws = 3;
  scenario.ablate = true;
  const SimReport report = MakeReport(scenario, Simulated(scenario));
  ASSERT_EQ(report.policies.size(), PolicyNames().size() + 5);
  for (const PolicyReport& policy : report.policies) {
    SCOPED_TRACE(policy.name);
    EXPECT_EQ(policy.documents_scored, report.documents);
    EXPECT_GE(policy.ratio_to_bound.least, 1);
    for (const double at : policy.task_scored_s) EXPECT_GT(at, 0);
    double sum = 0;
    for (const auto& [cause, share] : policy.device_time) sum += share;
    // A warm device that has to prepare does so while it computes its trial.
    const bool at_once = policy.decouplings.stay_warm && !policy.decouplings.prepare_once;
    EXPECT_NEAR(sum, 1, at_once ? 0.5 : 1e-9);
  }
}

TEST(RunScenario, TasksAreReportedInTheOrderOfTheFile) {
  Scenario scenario = Small();
  scenario.policies = {"elastic"};
  scenario.draws = 4;
  // One document takes 0.01 s for each of 20,000 tokens, longer than all other work.
  scenario.workload.datasets[4] = Dataset(4, "d4", 1, 20'000, 0.5);
  scenario.workload.datasets[4].generated_tokens.p95 = 0;
  const ScenarioResult result = Simulated(scenario);
  const SimReport report = MakeReport(scenario, result);
  ASSERT_EQ(report.policies.size(), 1u) << "coupled is only there to compare with";
  EXPECT_GT(report.policies[0].speedup_vs_coupled.p50, 1);
  EXPECT_EQ(report.tasks[4], "d4");
  for (const SimResult& draw : result.policies[0].draws) {
    for (size_t task = 0; task < report.tasks.size(); ++task)
      EXPECT_EQ(draw.task_scored_s[task] > 200, task == 4) << task;
  }
}

TEST(Report, JsonAndTextSayTheSame) {
  Scenario scenario = Small();
  scenario.draws = 3;
  const SimReport report = MakeReport(scenario, Simulated(scenario));
  const Json json = ToJson(report);
  EXPECT_EQ(json["policies"].size(), 6u);
  EXPECT_EQ(json["arguments"]["draws"], 3);
  const Json& elastic = json["policies"][5];
  EXPECT_EQ(elastic["name"], "elastic");
  EXPECT_EQ(elastic["makespan_s"], elastic["over_draws"]["makespan_s"]["p50"]);
  EXPECT_EQ(elastic["task_scored_s"].size(), 12u);
  EXPECT_FALSE(elastic.contains("published_speedup"));
  const std::string text = ReportText(report);
  EXPECT_THAT(text, HasSubstr(fmt::format("{:.1f}", elastic["makespan_s"].get<double>())));
  EXPECT_THAT(text,
              HasSubstr("12 datasets, 2 nodes of 2 devices; 1,740 documents with 8 scoring slots"));
}

TEST(Report, ThePublishedFiguresStandOnlyBesideWhatTheyAreOf) {
  Scenario scenario;
  scenario.workload = ParseWorkload(std::string(PresetWorkloadText()), "preset");
  scenario.cluster = FindCluster("acme");
  EXPECT_EQ(PublishedSpeedup(scenario, "round-robin"), 1.3);
  EXPECT_EQ(PublishedSpeedup(scenario, "elastic"), std::nullopt);
  scenario.cluster.nodes = 4;
  EXPECT_EQ(PublishedSpeedup(scenario, "round-robin"), 1.8);
  scenario.cluster.nodes = 2;
  EXPECT_EQ(PublishedSpeedup(scenario, "round-robin"), std::nullopt);
  scenario.cluster = FindCluster("acme-modern");
  EXPECT_EQ(PublishedSpeedup(scenario, "round-robin"), std::nullopt);
}

TEST(Spans, FollowOneAnotherOnEachDevice) {
  // A cold trial that loads within its lease and scores afterwards, and overlapping trials of a
  // warm device.
  const auto by_device = SpansByDevice({{0, "generate", 0, 10, "a"},
                                        {0, "start", 0, 2, ""},
                                        {0, "load", 2, 5, ""},
                                        {0, "score", 10, 12, ""},
                                        {1, "generate", 0, 6, "a"},
                                        {1, "generate", 4, 9, "b"}},
                                       2);
  const auto told = [&](size_t device) {
    std::string text;
    for (const SimSpan& span : by_device[device])
      text += fmt::format("{}{} {}-{};", span.name, span.label, span.begin, span.end);
    return text;
  };
  EXPECT_EQ(told(0), "start 0-2;load 2-5;generatea 5-10;score 10-12;");
  EXPECT_EQ(told(1), "generatea 0-6;generateb 6-9;");
  EXPECT_EQ(ShownDevices(3, 64), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(ShownDevices(1000, 4), (std::vector<int>{0, 250, 500, 750}));
}

TEST(Gantt, HasARowForEachDeviceOfEachPolicyAndNothingThatRuns) {
  Scenario scenario = Small();
  scenario.keep_spans = 1;
  const ScenarioResult result = Simulated(scenario);
  const std::string svg = GanttSvg(MakeReport(scenario, result), result);
  EXPECT_THAT(svg, HasSubstr("small &amp; odd on two: 2 nodes of 2 devices"));
  for (const std::string& policy : PolicyNames())
    EXPECT_THAT(svg, HasSubstr(">" + policy + "</tspan>"));
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  // The background for idle time: one stretch for each device.
  const Regex idle("fill=\"#e2e2e2\" d=\"([^\"]*)\"", {});
  const std::vector<Regex::Match> paths = idle.FindAll(svg);
  EXPECT_EQ(paths.size(), 6u);
  for (const Regex::Match& path : paths) {
    const auto begin = svg.begin();
    EXPECT_EQ(std::count(begin + static_cast<ptrdiff_t>(path[1].begin),
                         begin + static_cast<ptrdiff_t>(path[1].end), 'M'),
              4);
  }
}

TEST(Trace, EachRowIsFilledUpToItsPolicysEndWithoutOverlap) {
  Scenario scenario = Small();
  scenario.keep_spans = 1;
  const ScenarioResult result = Simulated(scenario);
  const TemporaryFolder folder;
  const auto path = folder / "trace.json";
  WriteTrace(path, MakeReport(scenario, result), result);
  const Json trace = ParseJson(ReadFile(path), "trace");
  std::map<int64_t, int64_t> ends;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const int64_t row = event["tid"].get<int64_t>(), begin = event["ts"].get<int64_t>();
    EXPECT_LE(std::abs(begin - ends[row]), 1) << event;
    ends[row] = begin + event["dur"].get<int64_t>();
  }
  ASSERT_EQ(ends.size(), 6u * 4);
  for (size_t policy = 0; policy < 6; ++policy) {
    for (int64_t device = 1; device <= 4; ++device) {
      EXPECT_NEAR(static_cast<double>(ends[static_cast<int64_t>(policy) * 4 + device]),
                  result.policies[policy].draws[0].makespan_s * 1e6, 2);
    }
  }
}

}  // namespace
}  // namespace evald
