#include "orchestrator/config/command_section.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evald/error.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;

constexpr const char* kCommandResults = "results: {file: r.json, scores: {acc: $.acc}}";

EvalConfig ReadCommand(const std::string& entry, const std::string& rest = "") {
  return ParseEvalConfig("checkpoint: /\ntasks:\n  - {" + entry + "}\n" + rest,
                         "/somewhere/eval.yaml", {});
}
std::string CommandProblem(const std::string& entry, const std::string& rest = "") {
  return CaughtText([&] { ReadCommand(entry, rest); }, ErrorKind::kUsage);
}

TEST(CommandSection, IsRead) {
  const EvalConfig config = ReadCommand(
      "command: [inspect, eval, \"{eval_dir}/task.py\", --limit, 10, '{\"a\": 1}'], name: my task, "
      "environment: {LOGS: \"{output}/logs\", N: 3, ON: true}, time_limit: 90.5, "
      "results: {file: \"logs/*.json\", scores: {acc: \"$.a[0]['b,c']\", "
      "loss: {path: $.l, higher_is_better: false}}}");
  ASSERT_EQ(config.tasks.size(), 1U);
  EXPECT_EQ(config.tasks[0].name, "my task");
  EXPECT_EQ(config.tasks[0].where, "/somewhere/eval.yaml:3");
  const CommandSpec& spec = config.tasks[0].command.value();
  EXPECT_THAT(spec.command,
              ElementsAre("inspect", "eval", "{eval_dir}/task.py", "--limit", "10", "{\"a\": 1}"));
  EXPECT_THAT(spec.environment,
              ElementsAre(Pair("LOGS", "{output}/logs"), Pair("N", "3"), Pair("ON", "true")));
  EXPECT_EQ(spec.results_file, "logs/*.json");
  ASSERT_EQ(spec.scores.size(), 2U);
  EXPECT_EQ(spec.scores[0].path, "$.a[0]['b,c']");
  EXPECT_TRUE(spec.scores[0].higher_is_better);
  EXPECT_FALSE(spec.scores[1].higher_is_better);
  EXPECT_EQ(spec.time_limit_s, 90.5);
  EXPECT_EQ(spec.eval_dir, "/somewhere");
}

TEST(CommandSection, TheFolderCountsOnlyIfTheCommandUsesIt) {
  const auto folder = [](const std::string& command) {
    return ReadCommand("command: [" + command + "], name: a, " + kCommandResults)
        .tasks[0]
        .command->eval_dir;
  };
  EXPECT_EQ(folder("inspect, eval"), "");
  EXPECT_EQ(folder("/bin/echo"), "");
  EXPECT_EQ(folder("./run.sh"), "/somewhere");
  EXPECT_EQ(folder("python3, \"{eval_dir}/x.py\""), "/somewhere");
}

TEST(CommandSection, TheSpecificationSurvivesItsMessage) {
  const CommandSpec spec =
      *ReadCommand(
           "command: [./a, b], name: a, environment: {X: y}, time_limit: 7, "
           "results: {file: r, scores: {l: {path: $.l, higher_is_better: false}}}")
           .tasks[0]
           .command;
  EXPECT_EQ(ToJson(CommandFromJson(ToJson(spec), "here")), ToJson(spec));
  Json broken = ToJson(spec);
  broken["command"] = Json::array();
  EXPECT_THAT(RefusalOf([&] { CommandFromJson(broken, "here"); }), HasSubstr("here"));
}

TEST(CommandSection, BadEntriesNameTheKeyAndWhatIsExpected) {
  const std::string good = std::string("name: a, ") + kCommandResults;
  const std::pair<std::string, const char*> cases[] = {
      {"command: inspect eval, " + good, "found 'inspect eval', expected a list of words"},
      {"command: [], " + good, "expected a list of 1 to 1000 words"},
      {"command: [{checkpoint}], " + good, "quote a word that begins with '{'"},
      {"command: [[a]], " + good, "expected text"},
      {"command: [\"\"], " + good, "the first word is empty"},
      {"command: [a, \"{chekpoint}\"], " + good,
       "there is no placeholder {chekpoint}; did you mean 'checkpoint'?"},
      {std::string("command: [a], ") + kCommandResults, "key 'tasks[0].name': is absent"},
      {std::string("command: [a], name: \"../x\", ") + kCommandResults, "key 'tasks[0].name'"},
      {"command: [a], name: a", "key 'tasks[0].results': is absent"},
      {"command: [a], name: a, results: {scores: {x: $.x}}",
       "key 'tasks[0].results.file': is absent"},
      {"command: [a], name: a, results: {file: /etc/passwd, scores: {x: $.x}}",
       "expected a path within the program's folder"},
      {"command: [a], name: a, results: {file: ../x, scores: {x: $.x}}",
       "expected a path within the program's folder"},
      {"command: [a], name: a, results: {file: x}", "expected a mapping of 1 to 64 scores"},
      {"command: [a], name: a, results: {file: x, scores: {}}", "expected a mapping of 1 to 64"},
      {"command: [a], name: a, results: {file: x, scores: {x: y}}",
       "'x': the path 'y', character 1: expected '$'"},
      {"command: [a], name: a, results: {file: x, scores: {x: 3}}",
       "'x': found 3, expected a path"},
      {"command: [a], name: a, results: {file: x, scores: {x: {path: $.x, lower: true}}}",
       "expected a path such as $.accuracy"},
      {"command: [a], name: a, results: {file: x, scores: {\"x,y\": $.x}}", "it has a comma"},
      {"command: [a], name: a, results: {file: x, scores: {x_stderr: $.x}}", "ends with _stderr"},
      {"command: [a], name: a, results: {file: x, scores: {x: $.x}, fiel: y}",
       "unknown key 'tasks[0].results.fiel'; did you mean 'file'"},
      {"command: [a], time_limt: 3, " + good, "did you mean 'time_limit'"},
      {"command: [a], time_limit: 0, " + good, "key 'tasks[0].time_limit'"},
      {"command: [a], time_limit: .nan, " + good, "key 'tasks[0].time_limit'"},
      {"command: [a], environment: [X], " + good, "expected a mapping of at most 100 variables"},
      {"command: [a], environment: {\"A=B\": x}, " + good, "'A=B' is no variable's name"},
      {"command: [a], environment: {OPENAI_API_KEY: x}, " + good,
       "evald itself sets OPENAI_API_KEY"},
      {"command: [a], environment: {X: [1]}, " + good, "expected text"},
      {"command: [a], limit: 3, " + good, "key 'tasks[0].limit': does not apply to a command"},
      {"command: [a], task: gsm8k, " + good, "key 'tasks[0].task': does not apply to a command"},
  };
  for (const auto& [entry, problem] : cases)
    EXPECT_THAT(CommandProblem(entry),
                AllOf(StartsWith("/somewhere/eval.yaml:3"), HasSubstr(problem)))
        << entry;
}

TEST(CommandSection, AnEngineWithoutAModelIsRefused) {
  const std::string entry = std::string("command: [a], name: a, ") + kCommandResults;
  EXPECT_EQ(CommandProblem(entry), "");
  EXPECT_THAT(CaughtText([&] {
                ParseEvalConfig("tasks: [{" + entry + "}]\nengine: {name: emulated}\n",
                                "/somewhere/eval.yaml", {});
              }),
              HasSubstr("the command 'a' cannot run with the engine 'emulated'"));
  EXPECT_EQ(CaughtText([&] {
              ParseEvalConfig("tasks: [{" + entry +
                                  "}]\nengine: {name: openai, base_url: \"http://host:8000\"}\n",
                              "/somewhere/eval.yaml", {});
            }),
            "");
}

}  // namespace
}  // namespace evald
