// Workload and cluster files: keys that are understood, and keys that are refused with their place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "evald/error.h"
#include "orchestrator/simulate/presets.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

using ::testing::HasSubstr;

const char* const kWorkload = R"(schema: evald-workload/1
name: small
model: {params: 1e9, bytes: 2e9, kv_bytes_per_token: 1000}
context_limit: 4096
datasets:
  - name: questions
    kind: loglikelihood
    documents: 100
    prompt_tokens: 300
    shared_prefix_tokens: 200
    shared_prefix_groups: 5
    doc_tokens: {mean: 100, p95: 200}
    choices: 4
    continuation_tokens: 2
    scoring: {kind: argmax_over_choices, cpu_seconds_per_document: 0.001}
  - name: programs
    kind: generate_until
    documents: 50
    prompt_tokens: 120
    doc_tokens: {mean: 120, p95: 300}
    max_gen_toks: 512
    generated_tokens: {mean: 80, p95: 200}
    scoring: {kind: code_execution, cpu_seconds_per_document: 0.25}
)";

const char* const kCluster = R"(schema: evald-cluster/1
name: two
nodes: 2
devices_per_node: 4
score_slots_per_node: 16
storage_bytes_per_s: 1e9
pcie_bytes_per_s: 1e10
memory_bytes_per_s: 1e12
flop_per_s: 1e14
executor:
  places: 8
  start_s: 15
  prepare_s: 5
  lease_s: 0.01
)";

std::string Changed(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

template <typename Parse>
std::string Problem(Parse parse, const std::string& text) {
  return CaughtText([&] { parse(text, "file.yaml"); }, ErrorKind::kUsage);
}

std::string WorkloadProblem(const std::string& from, const std::string& to) {
  return Problem(ParseWorkload, Changed(kWorkload, from, to));
}

std::string ClusterProblem(const std::string& from, const std::string& to) {
  return Problem(ParseCluster, Changed(kCluster, from, to));
}

TEST(WorkloadFile, IsReadAsItStands) {
  const Workload workload = ParseWorkload(kWorkload, "file.yaml");
  EXPECT_EQ(workload.name, "small");
  EXPECT_EQ(workload.dataset_count(), 2);
  const SimDataset& questions = workload.datasets[0];
  EXPECT_FALSE(questions.generates);
  EXPECT_EQ(questions.prefix_groups, 5);
  EXPECT_EQ(questions.own_tokens.most, 4096);
  EXPECT_FALSE(questions.slow_scoring);
  const SimDataset& programs = workload.datasets[1];
  EXPECT_TRUE(programs.generates);
  EXPECT_EQ(programs.generated_tokens.most, 512);
  EXPECT_EQ(programs.score_s, 0.25);
  EXPECT_TRUE(programs.slow_scoring);
}

TEST(WorkloadFile, ASecondPartIsATaskOfTheSameDataset) {
  const std::string part =
      "    second_part: {kind: generate_until, documents: 7, prompt_tokens: 10, doc_tokens: {mean: "
      "10}, "
      "max_gen_toks: 16, generated_tokens: {mean: 5}, scoring: {kind: exact_match, "
      "cpu_seconds_per_document: 0, remote_seconds_per_document: 2}}\n  - name: programs\n";
  const Workload workload =
      ParseWorkload(Changed(kWorkload, "  - name: programs\n", part), "file.yaml");
  ASSERT_EQ(workload.datasets.size(), 3u);
  EXPECT_EQ(workload.dataset_count(), 2);
  EXPECT_EQ(workload.datasets[1].name, "questions:second");
  EXPECT_EQ(workload.datasets[1].dataset, workload.datasets[0].dataset);
  EXPECT_TRUE(workload.datasets[1].slow_scoring) << "waiting for a service counts as slow";
}

TEST(WorkloadFile, RefusesWithThePlaceWhatWasFoundAndWhatWasExpected) {
  EXPECT_EQ(WorkloadProblem("documents: 50", "documents: many"),
            "file.yaml:18: key 'datasets[1].documents': found 'many', expected an integer from 1 "
            "to 100000000");
  EXPECT_EQ(WorkloadProblem("documents: 50", "documents: 0"),
            "file.yaml:18: key 'datasets[1].documents': found '0', expected an integer from 1 to "
            "100000000");
  EXPECT_EQ(WorkloadProblem("documents: 50", "documents: 2.5"),
            "file.yaml:18: key 'datasets[1].documents': found '2.5', expected an integer from 1 to "
            "100000000");
  EXPECT_EQ(WorkloadProblem("kind: generate_until", "kind: generate"),
            "file.yaml:17: key 'datasets[1].kind': found 'generate', expected loglikelihood or "
            "generate_until");
  EXPECT_EQ(WorkloadProblem("schema: evald-workload/1", "schema: evald-workload/2"),
            "file.yaml:1: key 'schema': found 'evald-workload/2', expected evald-workload/1");
  EXPECT_THAT(WorkloadProblem("    max_gen_toks: 512\n", ""),
              HasSubstr("file.yaml:16: key 'datasets[1].max_gen_toks': is absent"));
  EXPECT_THAT(WorkloadProblem("name: programs", "name: questions"),
              HasSubstr("file.yaml:16: key 'datasets[1].name': 'questions' stands here twice"));
  EXPECT_THAT(
      WorkloadProblem("    choices: 4", "    choises: 4"),
      HasSubstr("file.yaml:13: unknown key 'datasets[0].choises'; did you mean 'choices'?"));
  EXPECT_THAT(
      WorkloadProblem("context_limit: 4096", "context_limits: 4096"),
      HasSubstr("file.yaml:4: unknown key 'context_limits'; did you mean 'context_limit'?"));
  EXPECT_THAT(WorkloadProblem("generated_tokens: {mean: 80, p95: 200}",
                              "generated_tokens: {mean: 80, p95: 20}"),
              HasSubstr("file.yaml:22: key 'datasets[1].generated_tokens.p95': found 20, expected "
                        "at least the mean of 80"));
  EXPECT_THAT(
      WorkloadProblem("generated_tokens: {mean: 80, p95: 200}", "generated_tokens: {mean: 800}"),
      HasSubstr("file.yaml:22: key 'datasets[1].generated_tokens.mean': found 800, expected at "
                "most 512"));
  EXPECT_THAT(
      WorkloadProblem("generated_tokens: {mean: 80, p95: 200}", "generated_tokens: 80"),
      HasSubstr(
          "file.yaml:22: key 'datasets[1].generated_tokens': found '80', expected a mapping"));
  EXPECT_THAT(WorkloadProblem("params: 1e9", "params: -1"),
              HasSubstr("file.yaml:3: key 'model.params': found '-1'"));
  EXPECT_THAT(WorkloadProblem("datasets:\n", "datasets: [\n"), HasSubstr("not YAML"));
  EXPECT_EQ(
      Problem(ParseWorkload,
              "schema: evald-workload/1\nmodel: {params: 1, bytes: 1, kv_bytes_per_token: 1}\n"),
      "file.yaml:1: key 'datasets': is absent or empty, expected a list of datasets");
  EXPECT_EQ(Problem(ParseWorkload, "- 1\n"),
            "file.yaml:1: found a list of 1, expected a mapping of keys to values");
}

TEST(ClusterFile, IsReadAsItStands) {
  const SimCluster cluster = ParseCluster(kCluster, "file.yaml");
  EXPECT_EQ(cluster.devices(), 8);
  EXPECT_EQ(cluster.score_slots(), 32);
  EXPECT_EQ(cluster.places, 8);
  EXPECT_EQ(cluster.lease_s, 0.01);
  EXPECT_TRUE(cluster.stop_strings) << "an executor of today unless the file says otherwise";
}

TEST(ClusterFile, SaysHowACheckpointGetsToTheNodes) {
  const SimCluster plain = ParseCluster(kCluster, "file.yaml");
  EXPECT_EQ(plain.staging, SimStaging::kEach);
  EXPECT_EQ(plain.node_bytes_per_s, 1e9) << "as from storage";
  const SimCluster tree = ParseCluster(
      Changed(kCluster, "executor:",
              "staging: {way: tree, node_bytes_per_s: 5e9, fan_out: 3, hop_s: 0.5}\nexecutor:"),
      "file.yaml");
  EXPECT_EQ(tree.staging, SimStaging::kTree);
  EXPECT_EQ(tree.node_bytes_per_s, 5e9);
  EXPECT_EQ(tree.fan_out, 3);
  EXPECT_EQ(tree.hop_s, 0.5);
  EXPECT_EQ(ClusterProblem("executor:", "staging: {way: ring}\nexecutor:"),
            "file.yaml:10: key 'staging.way': found 'ring', expected each, link or tree");
  EXPECT_THAT(ClusterProblem("executor:", "staging: {fanout: 2}\nexecutor:"),
              HasSubstr("unknown key 'staging.fanout'; did you mean 'fan_out'?"));
  EXPECT_THAT(ClusterProblem("executor:", "staging: {fan_out: 0}\nexecutor:"),
              HasSubstr("key 'staging.fan_out': found '0', expected an integer from 1 to 1000"));
}

TEST(ClusterFile, RefusesWithThePlaceWhatWasFoundAndWhatWasExpected) {
  EXPECT_EQ(ClusterProblem("nodes: 2", "nodes: 0"),
            "file.yaml:3: key 'nodes': found '0', expected an integer from 1 to 100000");
  EXPECT_EQ(ClusterProblem("nodes: 2\n", ""),
            "file.yaml:1: key 'nodes': is absent, expected an integer from 1 to 100000");
  EXPECT_THAT(ClusterProblem("storage_bytes_per_s: 1e9", "storage_bytes_per_s: .nan"),
              HasSubstr("found '.nan', expected a number"));
  EXPECT_THAT(ClusterProblem("storage_bytes_per_s: 1e9", "storage_bytes_per_s: 0"),
              HasSubstr("file.yaml:6:"));
  EXPECT_THAT(ClusterProblem("  places: 8\n", ""),
              HasSubstr("file.yaml:11: key 'executor.places': is absent"));
  EXPECT_THAT(
      ClusterProblem("  places: 8", "  places: 8\n  stop_strings: perhaps"),
      HasSubstr(
          "file.yaml:12: key 'executor.stop_strings': found 'perhaps', expected true or false"));
  EXPECT_THAT(ClusterProblem("  start_s: 15", "  start: 15"),
              HasSubstr("file.yaml:12: unknown key 'executor.start'; did you mean 'start_s'?"));
  EXPECT_EQ(
      Problem(ParseCluster,
              Changed(kCluster,
                      std::string(kCluster).substr(std::string(kCluster).find("executor")), "")),
      "file.yaml:1: key 'executor': is absent, expected {places: ..., start_s: ..., prepare_s: "
      "..., lease_s: ...}");
}

TEST(Presets, AreWholeAndSayWhatTheyHold) {
  const Workload workload = ParseWorkload(std::string(PresetWorkloadText()), "preset");
  EXPECT_EQ(workload.dataset_count(), 63);
  int64_t documents = 0;
  for (const SimDataset& dataset : workload.datasets) documents += dataset.documents;
  EXPECT_EQ(documents, 290'943) << "as the file's head counts them";
  for (const SimPreset& preset : SimPresets())
    EXPECT_EQ(FindCluster(preset.cluster).name, preset.cluster);
  for (const std::string& name : SimClusterNames())
    EXPECT_EQ(FindCluster(name).devices_per_node, 8);
  EXPECT_EQ(PresetWorkloadText(),
            ReadFile(EVALD_SOURCE_DIR "/orchestrator/simulate/presets/acme-7b-63.yaml"));
}

TEST(Presets, WhatIsNotThereIsRefusedWithWhatIs) {
  const auto problem = [](const auto& find, const std::string& name) -> std::string {
    return CaughtText([&] { find(name); });
  };
  EXPECT_THAT(problem(FindPreset, "acme-7b-64"),
              HasSubstr("no preset is called 'acme-7b-64'; did you mean 'acme-7b-63'?"));
  EXPECT_THAT(
      problem(FindCluster, "acme-moderm"),
      HasSubstr("no cluster and no file is called 'acme-moderm'; did you mean 'acme-modern'?"));
}

}  // namespace
}  // namespace evald
