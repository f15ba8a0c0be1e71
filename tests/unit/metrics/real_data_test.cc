// The real benchmarks with answers made by a rule, against lm_eval 0.4.13's results for the same
// answers (tests/oracle/results.py recipe). Needs the data: EVALD_DATA_DIR, or ../shared/data.
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/aggregate.h"
#include "metrics/scorer.h"
#include "python/random.h"
#include "tests/unit/metrics/fixtures.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

fs::path DataDirectory() {
  const char* given = std::getenv("EVALD_DATA_DIR");
  return given != nullptr ? fs::path(given) : fs::path(EVALD_SOURCE_DIR) / "../shared/data";
}

Json Golden() {
  const std::string path = EVALD_SOURCE_DIR "/tests/golden/metrics/real.json";
  return ParseJson(ReadFile(path), path);
}

std::vector<Json> Rows(const fs::path& path) {
  std::vector<Json> rows;
  ForEachJsonLine(path, [&](size_t, Json&& row) { rows.push_back(std::move(row)); });
  return rows;
}

std::vector<Json> GzippedRows(const fs::path& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  std::string text;
  char piece[65536];
  for (int read = 0; (read = gzread(file, piece, sizeof piece)) > 0;)
    text.append(piece, static_cast<size_t>(read));
  gzclose(file);
  std::vector<Json> rows;
  for (const std::string& line : Split(text, '\n')) {
    if (!Trim(line).empty()) rows.push_back(ParseJson(line, path));
  }
  return rows;
}

class RealData : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(DataDirectory() / "gsm8k/test.jsonl")) {
      GTEST_SKIP() << "no benchmark data in " << DataDirectory() << "; set EVALD_DATA_DIR";
    }
  }

  // `results` orders the members of each metric differently from the harness.
  static void ExpectEntry(const std::string& name, const Json& entry) {
    const Json golden = Golden();
    EXPECT_EQ(nlohmann::json(entry), nlohmann::json(golden["results"][name])) << name;
  }
};

// recipe_answer of tests/oracle/results.py.
std::string RecipeAnswer(const std::string& answer, int64_t doc_id) {
  const std::string number = answer.substr(answer.rfind("#### ") + 5);
  switch (doc_id % 4) {
    case 0:
      return answer;
    case 1:
      return "The answer is " + number + ".";
    case 2:
      return "#### 0";
    default:
      return number + "\n#### $" + number;
  }
}

TEST_F(RealData, Gsm8k) {
  TaskDefinition task = test::AnswerTask();
  task.name = task.alias = "gsm8k";
  task.metrics[0].kwargs = {{"ignore_case", true},
                            {"ignore_punctuation", false},
                            {"regexes_to_ignore", {",", "\\$", "(?s).*#### ", "\\.$"}}};
  task.filters[0].name = "strict-match";
  task.filters[1].name = "flexible-extract";
  const Scorer scorer(task, nullptr);
  std::vector<ScoredDocument> scores;
  for (const Json& row : Rows(DataDirectory() / "gsm8k/test.jsonl")) {
    PreparedDocument document{static_cast<int64_t>(scores.size()), row, row["answer"], Json()};
    scores.push_back(scorer.Score(
        document, {test::Answer(document.doc_id, RecipeAnswer(row["answer"], document.doc_id))}));
  }
  ASSERT_EQ(scores.size(), 1319U);
  ExpectEntry("gsm8k", AggregateTask(task, scores));
}

TEST_F(RealData, Humaneval) {
  TaskDefinition task = test::CodeTask();
  task.name = task.alias = "humaneval";
  task.metrics[0].kwargs = {{"k", {1}}};
  SandboxOptions options;
  options.cpu_seconds = 20;
  options.wall_seconds = 120;
  std::unique_ptr<CodeRunner> runner;
  try {
    runner = MakeCodeRunner(options);
  } catch (const Error& e) {
    GTEST_SKIP() << "no sandbox here: " << e.what();
  }
  const Scorer scorer(task, runner.get());
  std::vector<ScoredDocument> scores;
  for (const Json& row : GzippedRows(DataDirectory() / "humaneval/HumanEval.jsonl.gz")) {
    const auto doc_id = static_cast<int64_t>(scores.size());
    const std::string test =
        row["test"].get<std::string>() + "\ncheck(" + row["entry_point"].get<std::string>() + ")";
    const std::string body =
        doc_id % 3 ? row["canonical_solution"].get<std::string>() : "    pass\n";
    scores.push_back(scorer.Score({doc_id, row, test, Json()}, {test::Answer(doc_id, body)}));
  }
  ASSERT_EQ(scores.size(), 164U);
  ExpectEntry("humaneval", AggregateTask(task, scores));
}

TaskDefinition MmluTask(const std::string& name, const std::string& alias) {
  TaskDefinition task = test::AnswerTask();
  task.name = name;
  task.alias = alias;
  task.output_type = "multiple_choice";
  task.metrics = {{"acc", "", "mean", true, Json::object()}};
  task.filters = {{"none", {{"take_first", Json::object()}}}};
  return task;
}

Json MmluEntry(const std::string& name, const std::string& subject, const std::string& alias) {
  const TaskDefinition task = MmluTask(name, alias);
  const Scorer scorer(task, nullptr);
  std::vector<ScoredDocument> scores;
  for (const Json& row : Rows(DataDirectory() / ("mmlu/test/" + subject + ".jsonl"))) {
    const auto doc_id = static_cast<int64_t>(scores.size());
    std::vector<Generation> generations(4);
    for (int idx = 0; idx < 4; ++idx) {
      PythonRandom random(doc_id * 4 + idx);
      Generation& generation = generations[static_cast<size_t>(idx)];
      generation.idx = idx;
      generation.kind = RequestKind::kLoglikelihood;
      generation.loglikelihood = -20 * random.Random();
      generation.is_greedy = random.Random() < 0.5;
    }
    scores.push_back(scorer.Score({doc_id, row, row["answer"], {"A", "B", "C", "D"}}, generations));
  }
  return AggregateTask(task, scores);
}

TEST_F(RealData, Mmlu) {
  const Json golden = Golden();
  Json entries = Json::object();
  std::vector<std::string> subjects;
  for (const auto& file : fs::directory_iterator(DataDirectory() / "mmlu/test")) {
    subjects.push_back(file.path().stem());
  }
  ASSERT_EQ(subjects.size(), 57U);
  for (const std::string& subject : subjects) {
    const std::string name = "mmlu_" + subject;
    entries[name] = MmluEntry(name, subject, golden["results"][name]["alias"]);
    ExpectEntry(name, entries[name]);
  }
  // The groups, with their members in the harness's order. The order decides the last digit of the
  // sums.
  std::vector<GroupDefinition> groups;
  for (const auto& [name, children] : golden["group_subtasks"].items()) {
    GroupDefinition group;
    group.name = name;
    group.alias = golden["results"][name]["alias"];
    group.children = children.get<std::vector<std::string>>();
    group.metrics = {{"acc", "mean", true, {}}};
    groups.push_back(group);
  }
  const Json result = AggregateGroups(groups, entries);
  ASSERT_EQ(result.size(), 5U);
  for (const auto& [name, entry] : result.items()) ExpectEntry(name, entry);
}

}  // namespace
}  // namespace evald
