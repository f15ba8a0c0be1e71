// results.json, the samples file and the table.
#include "orchestrator/report/results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash.h"
#include "base/text.h"
#include "evald/error.h"
#include "tests/unit/metrics/fixtures.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ResultsInput Input() {
  ResultsInput input;
  input.tasks = {test::AnswerTask(), test::CodeTask()};
  input.entries["sums"] = {{"name", "sums"},
                           {"alias", "Sümme"},
                           {"sample_len", 4},
                           {"exact_match,strict", 0.25},
                           {"exact_match_stderr,strict", 0.125},
                           {"exact_match,flexible", 1.0},
                           {"exact_match_stderr,flexible", "N/A"}};
  input.entries["code"] = {{"name", "code"},
                           {"alias", "code"},
                           {"sample_len", 2},
                           {"pass@1,create_test", 0.5},
                           {"pass@1_stderr,create_test", 0.5}};
  GroupDefinition group;
  group.name = "all";
  group.alias = "everything";
  group.version = 2;
  group.children = {"sums", "code"};
  group.metrics = {{"exact_match", "mean", true, {}}};
  input.groups = {group};
  input.model_name = "checkpoints/step:10";
  input.date = 1.5;
  input.evald = {{"fingerprint", "abc"}};
  return input;
}

std::vector<std::string> Keys(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

TEST(Results, HaveTheHarnessesShape) {
  const Json results = BuildResults(Input());
  EXPECT_THAT(Keys(results["results"]), ElementsAre("sums", "code", "all"));
  EXPECT_THAT(Keys(results["groups"]), ElementsAre("all"));
  EXPECT_EQ(results["groups"]["all"]["exact_match,strict"], 0.25);
  EXPECT_EQ(results["groups"]["all"]["exact_match_stderr,flexible"], "N/A");
  EXPECT_EQ(results["groups"]["all"]["sample_len"], 6);
  EXPECT_EQ(results["groups"]["all"]["sample_count"]["exact_match,strict"], 4);
  EXPECT_EQ(results["group_subtasks"]["all"], Json({"sums", "code"}));
  EXPECT_THAT(Keys(results["versions"]), ElementsAre("all", "code", "sums"));
  EXPECT_EQ(results["versions"]["all"], "2");
  EXPECT_EQ(results["versions"]["sums"], 1.0);
  EXPECT_EQ(results["n-shot"]["all"], 0);
  EXPECT_TRUE(results["higher_is_better"]["all"]["pass@1"].get<bool>());
  EXPECT_EQ(results["n-samples"]["sums"]["effective"], 4);
  EXPECT_EQ(results["model_name_sanitized"], "checkpoints__step__10");
  EXPECT_EQ(results["evald"]["fingerprint"], "abc");
  EXPECT_EQ(ResultsText(results), ResultsText(BuildResults(Input())));
}

TEST(Results, KeepWhatTheHarnessKeepsOfPrompts) {
  const Json plain = BuildResults(Input());
  for (const char* key : {"system_instruction", "system_instruction_sha", "fewshot_as_multiturn",
                          "chat_template", "chat_template_sha"}) {
    EXPECT_TRUE(plain.at(key).is_null()) << key;
  }
  ResultsInput input = Input();
  input.prompts = {
      {"system_instruction", "x"}, {"fewshot_as_multiturn", true}, {"chat_template", "abc"}};
  const Json results = BuildResults(input);
  EXPECT_EQ(results["system_instruction"], "x");
  EXPECT_EQ(results["system_instruction_sha"],
            "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881");
  EXPECT_EQ(results["fewshot_as_multiturn"], true);
  EXPECT_EQ(results["chat_template"], "abc");
  EXPECT_EQ(results["chat_template_sha"],
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Results, LeaveOutTasksWithoutAnEntry) {
  ResultsInput input = Input();
  input.entries.erase("code");
  const Json results = BuildResults(input);
  EXPECT_FALSE(results["results"].contains("code"));
  EXPECT_EQ(results["results"]["all"]["sample_len"], 4);
}

TEST(Table, IsAlignedByDisplayWidth) {
  const std::string table = ResultsTable(BuildResults(Input()));
  EXPECT_THAT(table, HasSubstr("↑"));
  EXPECT_THAT(table, HasSubstr("0.2500  ± 0.1250"));
  std::vector<std::string> lines;
  for (const std::string& line : Split(table, '\n')) lines.push_back(line);
  ASSERT_GT(lines.size(), 5U);
  const auto column = [&](const std::string& text) {
    for (const std::string& line : lines) {
      const size_t at = line.find(text);
      if (at != std::string::npos) return CodePoints(line.substr(0, at));
    }
    return std::string::npos;
  };
  EXPECT_EQ(column("Metric"), column("exact_match"));
  EXPECT_EQ(column("Metric"), column("pass@1"));
  EXPECT_THAT(lines[2], ::testing::StartsWith("everything"));
  EXPECT_THAT(table, HasSubstr("\n  Sümme"));
}

TEST(Table, TruncatedAnswersHaveAColumnIfThereAreAny) {
  ResultsInput input = Input();
  EXPECT_EQ(ResultsTable(BuildResults(input)).find("Truncated"), std::string::npos);
  const auto count = [](int truncated) {
    return Json{{"answers", 4}, {"truncated", truncated}, {"share", truncated / 4.0}};
  };
  input.evald["truncated_answers"] = {{"sums", count(0)}};
  EXPECT_EQ(ResultsTable(BuildResults(input)).find("Truncated"), std::string::npos);
  input.evald["truncated_answers"] = {{"sums", count(1)}, {"code", count(0)}};
  const std::string table = ResultsTable(BuildResults(input));
  EXPECT_THAT(table, HasSubstr("Truncated"));
  EXPECT_THAT(table, HasSubstr("1 of 4"));
  EXPECT_THAT(table, HasSubstr("0 of 4"));
}

TEST(Samples, OneLinePerFilterAndDocument) {
  const TemporaryFolder scratch;
  const TaskDefinition task = test::AnswerTask();
  test::PrepareAnswers(task, 2, scratch.path() / "prepared");
  const PreparedTask prepared(scratch.path() / "prepared");
  SampleSource source;
  source.generations = [](int64_t doc_id, const std::function<void(Generation&&)>& visit) {
    Generation answer = test::Answer(doc_id, "ä\n");
    if (doc_id == 1) answer.finish = FinishReason::kLength;
    visit(std::move(answer));
  };
  source.detail = [](int64_t doc_id) -> std::string_view {
    return doc_id == 1 ? R"([[{"status":"timeout"}]])" : "";
  };
  source.score = [](int64_t doc_id) {
    ScoredDocument score;
    score.doc_id = doc_id;
    for (const char* filter : {"strict", "flexible"})
      score.filters.push_back({filter, nullptr, {{"exact_match", 0.0}}, {}});
    return score;
  };
  source.filtered = [](int64_t, const std::string&) { return R"(["5"])"; };
  source.bytes = [](int64_t) { return 100; };
  const std::filesystem::path path = scratch.path() / "samples.jsonl";
  const std::string hash = WriteSamples(path, task, prepared, source, 2);
  EXPECT_EQ(hash.size(), 64U);
  const std::vector<std::string> lines = Split(ReadFile(path), '\n');
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[0],
            "{\"doc_id\": 0, \"doc\": {\"task_id\": \"Sums/0\", \"prompt\": \"p\", \"n\": 0}, "
            "\"target\": \"#### 0\", "
            "\"arguments\": {\"gen_args_0\": {\"arg_0\": \"What is 0?\", \"arg_1\": {\"until\": "
            "[\"\\n\"]}}}, "
            "\"resps\": [[\"ä\\n\"]], \"filtered_resps\": [\"5\"], \"filter\": \"strict\", "
            "\"metrics\": [\"exact_match\"], \"doc_hash\": \"" +
                Sha256Hex("{\n  \"task_id\": \"Sums/0\",\n  \"prompt\": \"p\",\n  \"n\": 0\n}") +
                "\", \"prompt_hash\": \"" + Sha256Hex("What is 0?") + "\", \"target_hash\": \"" +
                Sha256Hex("#### 0") + "\", \"exact_match\": 0.0}");
  EXPECT_THAT(lines[1], HasSubstr("\"doc_id\": 1"));
  EXPECT_EQ(Json::parse(lines[1])["evald_truncated"], Json({{true}}));
  EXPECT_EQ(Json::parse(lines[1])["evald_detail"][0][0]["status"], "timeout");
  EXPECT_THAT(lines[2], HasSubstr("\"filter\": \"flexible\""));
}

TEST(Results, ATaskWithoutAVersionIsYamlAsInTheHarness) {
  ResultsInput input = Input();
  input.tasks[0].version = nullptr;
  input.tasks[1].version = nullptr;
  input.tasks[1].config = {{"metadata", {{"version", nullptr}}}};
  input.groups[0].version = nullptr;
  const Json versions = BuildResults(input)["versions"];
  EXPECT_EQ(versions["sums"], "Yaml");
  EXPECT_TRUE(versions["code"].is_null());
  EXPECT_EQ(versions["all"], "N/A");
}

}  // namespace
}  // namespace evald
