#include "orchestrator/config/eval_config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evald/error.h"
#include "orchestrator/config/yaml_section.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string ProblemOf(const std::string& text, const std::vector<std::string>& set = {}) {
  return CaughtText([&] { ParseEvalConfig(text, "/somewhere/eval.yaml", {set, ""}); },
                    ErrorKind::kUsage);
}

constexpr const char* kPlain =
    "tasks: [gsm8k]\n"
    "engine: {name: emulated}\n"
    "workers:\n"
    "  count: 2\n";

TEST(EvalConfig, ErrorsOfTheFileNameItsLine) {
  EXPECT_EQ(ProblemOf(kPlain), "");
  EXPECT_THAT(ProblemOf(std::string(kPlain) + "  thread: 1\n"),
              AllOf(StartsWith("/somewhere/eval.yaml:5: unknown key 'workers.thread'"),
                    HasSubstr("did you mean 'threads'")));
}

TEST(EvalConfig, AJudgeIsReadStrictly) {
  const std::string plain = kPlain;
  const auto judge = [&](const std::string& keys) {
    return ProblemOf(plain + "judge: {" + keys + "}\n");
  };
  EXPECT_EQ(judge("base_url: 'http://h:1/v1', model: m, retries: 3, temperature: 0.5"), "");
  EXPECT_THAT(judge("url: x"), HasSubstr("unknown key 'judge.url'"));
  EXPECT_THAT(judge("base_url: 'ftp://h'"), HasSubstr("key 'judge.base_url': found"));
  EXPECT_THAT(judge("base_url: 'http://me:pw@h/v1'"), HasSubstr("key 'judge.base_url': found"));
  EXPECT_THAT(judge("api_key_env: 'A KEY'"), HasSubstr("the name of an environment variable"));
  EXPECT_THAT(judge("concurrency: 0"), HasSubstr("judge.concurrency"));
  EXPECT_THAT(judge("timeout_s: 0"), HasSubstr("judge.timeout_s"));
  const EvalConfig config = ParseEvalConfig(
      plain + "judge: {base_url: 'http://h:1/v1', model: m, concurrency: 3, max_tokens: 9}\n",
      "/somewhere/eval.yaml", {});
  EXPECT_EQ(ToJson(config)["judge"], config.judge);
  EXPECT_EQ(ToJson(config, true)["judge"], (Json{{"model", "m"}, {"max_tokens", 9}}));
}

TEST(EvalConfig, ErrorsOfSetNameTheAssignment) {
  const std::pair<const char*, const char*> cases[] = {
      {"wokers=3", "--set wokers=3: unknown key 'wokers'; did you mean 'workers'"},
      {"workers.cont=3", "--set workers.cont=3: unknown key 'workers.cont'; did you mean 'count'"},
      {"workers.count=many", "--set workers.count=many: key 'workers.count': found 'many'"},
      {"workers=3", "--set workers=3: key 'workers': found '3'"},
      {"workers={count: 0}", "--set workers={count: 0}: key 'workers.count': found '0'"},
      {"metrics.sandbox.cpu=1", "--set metrics.sandbox.cpu=1: unknown key 'metrics.sandbox.cpu'"},
      {"staging.rot=/x", "--set staging.rot=/x: unknown key 'staging.rot'"},
      {"tasks=[{task: gsm8k, limits: 3}]", "--set tasks=[{task: gsm8k, limits: 3}]: unknown key"},
      {"tasks=[]", "--set tasks=[]: key 'tasks'"},
      {"workers", "--set workers: expected key.path=value"},
  };
  for (const auto& [assignment, problem] : cases) {
    EXPECT_THAT(ProblemOf(kPlain, {assignment}),
                AllOf(StartsWith(problem), Not(HasSubstr("eval.yaml"))));
  }
  // A fault in the file is reported as the file's.
  EXPECT_THAT(ProblemOf(std::string(kPlain) + "  thread: 1\n", {"workers.count=3"}),
              StartsWith("/somewhere/eval.yaml:5: unknown key 'workers.thread'"));
}

TEST(EvalConfig, ATabIsCalledATab) {
  const std::string sentence = " is indented by a tab; YAML is indented by spaces";
  EXPECT_THAT(ProblemOf("tasks: [gsm8k]\nengine:\n\tname: emulated\n"),
              HasSubstr("eval.yaml:3: not YAML: line 3" + sentence));
  EXPECT_THAT(ProblemOf("tasks:\n  - gsm8k\n\t- mmlu\n"),
              HasSubstr("eval.yaml:3: not YAML: line 3" + sentence));
  EXPECT_THAT(ProblemOf("\ttasks: [gsm8k]\n"), HasSubstr("line 1" + sentence));
  EXPECT_THAT(ProblemOf("tasks:\n\t- gsm8k\n"), HasSubstr("line 2" + sentence));
  EXPECT_EQ(ProblemOf("{\n\t\"tasks\": [\"gsm8k\"],\n\t\"engine\": {\"name\": \"emulated\"}\n}\n"),
            "")
      << "JSON may be";
}

TEST(EvalConfig, TheDataFolderIsThere) {
  EXPECT_EQ(ProblemOf(kPlain, {"data_dir=/tmp"}), "");
  EXPECT_THAT(
      ProblemOf(std::string(kPlain) + "data_dir: nowhere\n"),
      StartsWith("/somewhere/eval.yaml:5: key 'data_dir': /somewhere/nowhere is not a folder"));
}

TEST(EvalConfig, AMisplacedKeyIsSentWhereItBelongs) {
  const std::pair<const char*, const char*> cases[] = {
      {"repeats: 5\n",
       "eval.yaml:5: unknown key 'repeats'; it belongs to an entry of 'tasks', as in tasks: "
       "[{task: "
       "gsm8k, repeats: 5}]"},
      {"limit_total: 5\n",
       "unknown key 'limit_total'; it belongs to an entry of 'tasks', as in tasks: [{task: gsm8k, "
       "limit_total: 100}]"},
      {"gen_kwargs: {}\n", "unknown key 'gen_kwargs'; here this is 'generation_kwargs'"},
      {"model: /tmp\n", "unknown key 'model'; here this is 'checkpoint'"},
      {"enable_thinking: true\n",
       "unknown key 'enable_thinking'; it belongs to 'engine', or to an entry of 'tasks', as in "
       "tasks: [{task: gsm8k, enable_thinking: true}]"},
      {"model_args: /tmp\n", "unknown key 'model_args'; valid keys here: "},
      {"temperature: 1\n",
       "unknown key 'temperature'; it belongs to 'generation_kwargs' in an entry of 'tasks'"},
      {"threads: 1\n", "unknown key 'threads'; it belongs to 'workers'"},
      {"output: {cache_dir: x}\n",
       "eval.yaml:5: unknown key 'output.cache_dir'; it belongs to the top of the file"},
      {"output: {output_dir: x}\n", "unknown key 'output.output_dir'; here this is 'dir'"},
      {"metrics: {cpu_seconds: 1}\n",
       "unknown key 'metrics.cpu_seconds'; it belongs to 'metrics.sandbox'"},
      {"gates: {task: gsm8k, rules: []}\n",
       "unknown key 'gates.task'; it belongs to an entry of 'tasks', or to an entry of "
       "'gates.rules'"},
      {"gates: {rules: [{task: gsm8k, metric: acc, min: 1, baseline: x}]}\n",
       "it belongs to 'gates'"},
  };
  for (const auto& [text, problem] : cases)
    EXPECT_THAT(ProblemOf(std::string(kPlain) + text), HasSubstr(problem)) << text;
  EXPECT_THAT(ProblemOf("tasks: [gsm8k]\nmodel: /tmp\n"),
              HasSubstr("eval.yaml:2: unknown key 'model'; here this is 'checkpoint'"));
  EXPECT_THAT(ProblemOf("tsks: [gsm8k]\ncheckpoint: /tmp\n"),
              HasSubstr("eval.yaml:1: unknown key 'tsks'; did you mean 'tasks'?"));
  EXPECT_THAT(ProblemOf("tasks: [gsm8k]\nengine: {name: native, threads: 2}\n"),
              HasSubstr("key 'engine.threads': unknown key; it belongs to 'workers'"));
  EXPECT_THAT(ProblemOf("tasks: [{task: gsm8k, limits: 3}]\n"),
              HasSubstr("or did you mean 'limit'?"));
}

EvalConfig Parsed(const std::string& text, const std::vector<std::string>& set = {}) {
  return ParseEvalConfig(text, "/somewhere/eval.yaml", {set, ""});
}

TEST(EvalConfig, SettingsBesideTheTasksHoldForThoseWithoutTheirOwn) {
  const EvalConfig config = Parsed(
      "engine: {name: emulated}\nlimit: 100\nnum_fewshot: 3\n"
      "generation_kwargs: {max_gen_toks: 9, temperature: 1}\n"
      "tasks: [a, {task: b, limit: 2, num_fewshot: 0, generation_kwargs: {max_gen_toks: 5}}, "
      "{task: c, limit_total: 7}, {task: d, limit: 0.5}]\n");
  EXPECT_EQ(config.tasks[0].limit, 100);
  EXPECT_EQ(config.tasks[0].num_fewshot, 3);
  EXPECT_EQ(config.tasks[0].generation_kwargs, Json({{"max_gen_toks", 9}, {"temperature", 1}}));
  EXPECT_EQ(config.tasks[1].limit, 2);
  EXPECT_EQ(config.tasks[1].num_fewshot, 0);
  EXPECT_EQ(config.tasks[1].generation_kwargs, Json({{"max_gen_toks", 5}, {"temperature", 1}}));
  EXPECT_EQ(config.tasks[2].limit, std::nullopt);
  EXPECT_EQ(config.tasks[2].limit_total, 7);
  EXPECT_EQ(config.tasks[3].limit, std::nullopt);
  EXPECT_EQ(config.tasks[3].limit_share, 0.5);
}

TEST(EvalConfig, AShareOfTheDocumentsDecidesScores) {
  const auto tasks = [](const char* limit) {
    return ToJson(Parsed(kPlain, {std::string("tasks.*.limit=") + limit}), true)["tasks"];
  };
  EXPECT_EQ(tasks("0.5"), Json::parse(R"([{"task": "gsm8k", "limit": 0.5}])"));
  EXPECT_EQ(tasks("5"), Json::parse(R"([{"task": "gsm8k", "limit": 5}])"));
}

TEST(EvalConfig, LimitsThatAreNoneAreRefused) {
  for (const char* limit :
       {"0", "-1", "1.0", "1.5", "0.0", "-0.5", ".nan", "many", "true", "[1]"}) {
    EXPECT_THAT(ProblemOf(std::string(kPlain) + "limit: " + limit + "\n"),
                AllOf(StartsWith("/somewhere/eval.yaml:5: key 'limit': found "),
                      HasSubstr("expected a number of documents such as 100, or a share")))
        << limit;
  }
}

TEST(EvalConfig, SetReachesEveryTask) {
  const std::string text =
      "checkpoint: /tmp\nengine: {name: emulated}\n"
      "tasks: [a, {task: b, limit: 2}, {name: c, command: [x], results: {file: r, scores: {s: "
      "$.s}}}]\n";
  const EvalConfig config = Parsed(text, {"tasks.*.limit=7", "tasks.*.num_fewshot=1"});
  ASSERT_EQ(config.tasks.size(), 3u);
  EXPECT_EQ(config.tasks[0].name, "a");
  EXPECT_EQ(config.tasks[0].limit, 7);
  EXPECT_EQ(config.tasks[1].limit, 7);
  EXPECT_EQ(config.tasks[1].num_fewshot, 1);
  EXPECT_EQ(config.tasks[2].limit, std::nullopt);
  EXPECT_THAT(ProblemOf(text, {"tasks.*.limit=0"}),
              StartsWith("--set tasks.*.limit=0: key 'tasks[0].limit': found 0"));
  EXPECT_THAT(ProblemOf(text, {"tasks.*.limits=1"}),
              StartsWith("--set tasks.*.limits=1: unknown key 'tasks[0].limits'"));
  EXPECT_THAT(ProblemOf(text, {"workers.*.count=1"}), HasSubstr("workers"));
}

TEST(EvalConfig, ErrorsOfTheSandboxNameTheirKeyOnce) {
  const auto sandbox = [](const std::string& text) {
    return ProblemOf(std::string(kPlain) + "metrics:\n  sandbox:\n    " + text + "\n");
  };
  EXPECT_THAT(sandbox("wall_secnds: 1"),
              StartsWith("/somewhere/eval.yaml:7: unknown key 'metrics.sandbox.wall_secnds'; did "
                         "you mean 'wall_seconds'?"));
  EXPECT_THAT(sandbox("wall_seconds: 0"),
              StartsWith("/somewhere/eval.yaml:7: key 'metrics.sandbox.wall_seconds': found '0', "
                         "expected a number from"));
  EXPECT_THAT(sandbox("memory_bytes: 1"),
              StartsWith("/somewhere/eval.yaml:7: key 'metrics.sandbox.memory_bytes': found 1 B, "
                         "expected at least 16"));
  EXPECT_THAT(sandbox("python: python3"),
              StartsWith("/somewhere/eval.yaml:7: key 'metrics.sandbox.python': found 'python3', "
                         "expected an absolute path"));
  EXPECT_THAT(sandbox("unsafe: perhaps"),
              StartsWith("/somewhere/eval.yaml:7: key 'metrics.sandbox.unsafe': found 'perhaps', "
                         "expected true or false"));
}

TEST(EvalConfig, TheModelsNameIsShortAndPlain) {
  EXPECT_EQ(ProblemOf(kPlain, {"name=step-1"}), "");
  EXPECT_THAT(ProblemOf(kPlain, {"name=" + std::string(256, 'x')}),
              HasSubstr("key 'name': must be at most 255 bytes"));
  EXPECT_THAT(ProblemOf(std::string(kPlain) + "name: \"\\e[2J\"\n"),
              StartsWith("/somewhere/eval.yaml:5: key 'name': must be at most 255 bytes without "
                         "control characters"));
}

TEST(EvalConfig, BytesThatAreNoTextAreRefusedBeforeTheyAreRead) {
  EXPECT_THAT(ProblemOf(kPlain, {"checkpoint=/tmp/caf\xe9"}),
              StartsWith("--set checkpoint=/tmp/caf\\xe9: the assignment is not text in UTF-8; "));
  EXPECT_THAT(ProblemOf(kPlain, {"checkpoint=/tmp/a\x1b[2J"}),
              AllOf(StartsWith("--set checkpoint=/tmp/a\\x1b[2J: the assignment holds"),
                    HasSubstr("control character \\x1b")));
  EXPECT_THAT(ProblemOf(kPlain, {"checkpoint=/tmp/a\x7f"}), HasSubstr("\\x7f"));
  EXPECT_THAT(
      ProblemOf(std::string(kPlain) + "name: na\xefve\n"),
      StartsWith("/somewhere/eval.yaml:5: the line 'name: na\\xefve' is not text in UTF-8"));
  EXPECT_THAT(ProblemOf(std::string(kPlain) + "name: \"a\x01\"\n"),
              AllOf(StartsWith("/somewhere/eval.yaml:5: "), HasSubstr("\\x01")));
  EXPECT_EQ(ProblemOf(std::string(kPlain) + "name: naïve\r\n# a\ttab\n"), "");
}

TEST(EvalConfig, APathThatNoMessageCouldHoldIsRefusedByItsKey) {
  const TemporaryFolder temporary;
  const std::filesystem::path odd = temporary.path() / "caf\xe9";
  std::filesystem::create_directories(odd);
  const auto problem = [&](const std::string& text) {
    return CaughtText([&] { ParseEvalConfig(text, odd / "eval.yaml", {}); }, ErrorKind::kUsage);
  };
  EXPECT_THAT(problem(kPlain), AllOf(HasSubstr("key 'output.dir': the path '"),
                                     HasSubstr("caf\\xe9/runs' is not UTF-8")));
  EXPECT_THAT(problem(std::string(kPlain) + "output: {dir: /tmp}\ntask_dirs: [.]\n"),
              HasSubstr("key 'task_dirs': the path '"));
  EXPECT_EQ(problem(std::string(kPlain) + "output: {dir: /tmp}\n"), "");
  EXPECT_THAT(ProblemOf(std::string(kPlain) + "output: {dir: \"/tmp/a\\0b\"}\n"),
              HasSubstr("key 'output.dir': the path '/tmp/a\\x00b' is not UTF-8 without NUL"));
}

TEST(EvalConfig, AFolderWhoseNameIsNoLabelIsRefusedAsTheCheckpoint) {
  const TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path() / "step\x1b";
  std::filesystem::create_directories(folder);
  const std::string text =
      std::string(kPlain) + "checkpoint: \"" + temporary.path().string() + "/step\\e\"\n";
  EXPECT_THAT(ProblemOf(text), AllOf(StartsWith("/somewhere/eval.yaml:5: key 'checkpoint': the "
                                                "folder's name 'step\\x1b'"),
                                     HasSubstr("set 'name'")));
  EXPECT_EQ(ProblemOf(text + "name: step\n"), "");
}

// A text that was submitted is no file that anyone could open.
TEST(EvalConfig, ATextMayHaveANameOfItsOwn) {
  EvalOverrides overrides;
  overrides.called = "the submitted config";
  EXPECT_THAT(CaughtText([&] { ParseEvalConfig("taks: []\n", "/eval.yaml", overrides); }),
              StartsWith("the submitted config:1: "));
}

TEST(EvalConfig, BootstrapIterationsAreBounded) {
  EXPECT_EQ(ProblemOf(kPlain, {"bootstrap_iters=1000000"}), "");
  EXPECT_EQ(ProblemOf(kPlain, {"bootstrap_iters=0"}), "");
  EXPECT_THAT(ProblemOf(std::string(kPlain) + "bootstrap_iters: 1000001\n"),
              AllOf(StartsWith("/somewhere/eval.yaml:5: key 'bootstrap_iters': found '1000001'"),
                    HasSubstr("1000000")));
}

TEST(EvalConfig, PromptsAreWrittenAsItSays) {
  const std::string text = std::string(kPlain) + "checkpoint: /tmp\n";
  const auto read = [&](const std::vector<std::string>& set) {
    return ParseEvalConfig(text, "/somewhere/eval.yaml", {set, ""}).prompts;
  };
  EXPECT_FALSE(read({}).chat_template);
  EXPECT_FALSE(read({}).Multiturn());
  EXPECT_TRUE(read({"chat_template=true"}).Multiturn());
  EXPECT_EQ(read({"chat_template=tool_use"}).template_name, "tool_use");
  const PromptsConfig all = read({"chat_template=true", "fewshot_as_multiturn=false",
                                  "chat_date=2026-01-31", "system_instruction=Be brief."});
  EXPECT_FALSE(all.Multiturn());
  EXPECT_EQ(all.chat_date, (ChatDate{1769817600, false}));
  EXPECT_EQ(all.system_instruction, "Be brief.");
}

TEST(EvalConfig, GenerationSettingsOfTheCheckpointAreIgnoredWhereItSays) {
  const std::string text = "tasks: [gsm8k]\ncheckpoint: /tmp\n";
  const auto read = [&](const std::string& set) {
    return ParseEvalConfig(text, "/somewhere/eval.yaml", {{set}, ""});
  };
  const EvalConfig plain = read("seed=1"), ignored = read("generation_config=ignore");
  EXPECT_EQ(ToJson(plain, true)["generation_config"], "checkpoint");
  EXPECT_EQ(ToJson(ignored, true)["generation_config"], "ignore")
      << "a run is not resumed with the other";
  EXPECT_FALSE(plain.engine.settings.contains("generation_config"));
  EXPECT_EQ(ignored.engine.settings["generation_config"], "ignore")
      << "workers of the one serve no run of the other";
  EXPECT_EQ(ToJson(read("generation_config=checkpoint"), true), ToJson(read("seed=1234"), true));
  EXPECT_THAT(
      ProblemOf(text, {"generation_config=of_course"}),
      HasSubstr("key 'generation_config': found 'of_course', expected checkpoint or ignore"));
  EXPECT_THAT(ProblemOf(text + "engine: {generation_config: ignore}\n", {}),
              HasSubstr("beside 'engine'"));
  // Engines that have their answers already do not know such a setting.
  const EvalConfig emulated =
      ParseEvalConfig("tasks: [gsm8k]\nengine: {name: emulated}\ngeneration_config: ignore\n",
                      "/somewhere/eval.yaml", {});
  EXPECT_TRUE(emulated.engine.settings.empty());
  EXPECT_FALSE(ToJson(emulated, true).contains("generation_config"));
}

constexpr const char* kThinker =
    "checkpoint: /tmp\n"
    "chat_template: true\n"
    "engine: {name: native, enable_thinking: true, think_end_token: </think>}\n"
    "tasks:\n";

EvalConfig ReadThinker(const std::string& tasks) {
  return ParseEvalConfig(kThinker + tasks, "/somewhere/eval.yaml", {});
}

TEST(EvalConfig, TasksThinkAsTheEngineDoesUnlessTheySayOtherwise) {
  const EvalConfig config = ReadThinker(
      "  - gsm8k\n"
      "  - {task: mmlu, enable_thinking: false}\n"
      "  - {task: mbpp, enable_thinking: false, think_end_token: x}\n"
      "  - {task: humaneval, think_end_token: 7}\n");
  ASSERT_EQ(config.tasks.size(), 4u);
  EXPECT_EQ(config.tasks[0].enable_thinking, true);
  EXPECT_EQ(config.tasks[0].think_end.text, "</think>");
  EXPECT_EQ(config.tasks[1].enable_thinking, false);
  EXPECT_FALSE(config.tasks[1].think_end.given()) << "stop strings end its answers as they come";
  EXPECT_EQ(config.tasks[2].think_end.text, "x");
  EXPECT_EQ(config.tasks[3].enable_thinking, true);
  EXPECT_EQ(config.tasks[3].think_end.token, 7);
  EXPECT_TRUE(config.engine.settings.empty())
      << "workers serve every run, whether it thinks or not";
  EXPECT_EQ(config.engine.think_end.text, "</think>");
}

TEST(EvalConfig, ThinkingDecidesScores) {
  const auto deciding = [](const std::string& tasks) { return ToJson(ReadThinker(tasks), true); };
  EXPECT_EQ(deciding("  - gsm8k\n")["tasks"][0],
            (Json{{"task", "gsm8k"}, {"enable_thinking", true}, {"think_end_token", "</think>"}}));
  EXPECT_NE(deciding("  - gsm8k\n"), deciding("  - {task: gsm8k, think_end_token: 7}\n"));
  EXPECT_NE(deciding("  - gsm8k\n"), deciding("  - {task: gsm8k, enable_thinking: false}\n"));
  const auto with = [](const std::string& arguments) {
    return ToJson(ParseEvalConfig(
                      std::string(kThinker) + "  - gsm8k\nchat_template_args: " + arguments + "\n",
                      "/somewhere/eval.yaml", {}),
                  true)["prompts"];
  };
  EXPECT_EQ(with("{reasoning_effort: low}")["chat_template_args"]["reasoning_effort"], "low");
  EXPECT_FALSE(with("{}").contains("chat_template_args"));
}

TEST(EvalConfig, ThinkingThatCannotBeIsRefused) {
  const auto problem = [](const std::string& engine, const std::string& more = "") {
    return ProblemOf("checkpoint: /tmp\nchat_template: true\nengine: " + engine +
                     "\ntasks: [gsm8k]\n" + more);
  };
  EXPECT_EQ(problem("{think_end_token: </think>}"), "");
  EXPECT_EQ(problem("{enable_thinking: false}"), "");
  for (const char* bad : {"\"\"", "-1", "1.5", "[a]", "true", "2147483648", "{a: b}"}) {
    EXPECT_THAT(problem(fmt::format("{{think_end_token: {}}}", bad)),
                AllOf(StartsWith("/somewhere/eval.yaml:3: key 'engine.think_end_token': found "),
                      HasSubstr("expected a text such as \"</think>\", or the id of a token")))
        << bad;
  }
  EXPECT_THAT(problem("{enable_thinking: perhaps}"),
              HasSubstr("key 'engine.enable_thinking': found 'perhaps', expected true or false"));
  EXPECT_THAT(problem("{enable_thinking: true}"),
              AllOf(StartsWith("/somewhere/eval.yaml:3: key 'engine.enable_thinking': is true, but "
                               "'think_end_token' is absent"),
                    HasSubstr("name what ends the thinking")));
  EXPECT_THAT(ProblemOf("checkpoint: /tmp\ntasks: [{task: gsm8k, enable_thinking: false}]\n"),
              AllOf(StartsWith("/somewhere/eval.yaml:2: task 'gsm8k': key 'enable_thinking'"),
                    HasSubstr("'chat_template' is not set")));
  EXPECT_THAT(problem("{think_end: x}"), HasSubstr("unknown key"));
  EXPECT_THAT(problem("{}", "chat_template_args: [1]\n"), HasSubstr("expected a mapping"));
  EXPECT_THAT(problem("{}", "chat_template_args: {enable_thinking: true}\n"),
              HasSubstr("give it as 'engine.enable_thinking'"));
  EXPECT_THAT(problem("{}", "chat_template_args: {messages: 1}\n"),
              HasSubstr("has 'messages', which transformers gives a template itself"));
  EXPECT_THAT(ProblemOf("checkpoint: /tmp\ntasks: [gsm8k]\nchat_template_args: {a: 1}\n"),
              HasSubstr("'chat_template' is not set"));
}

TEST(EvalConfig, DevicesAreAskedForByNameOrCounted) {
  const auto read = [](const std::string& workers) {
    return ParseEvalConfig("tasks: [gsm8k]\nengine: {name: emulated}\nworkers: " + workers + "\n",
                           "/somewhere/eval.yaml", {})
        .workers;
  };
  EXPECT_THAT(read("{threads: 1}").devices, ElementsAre("auto"));
  EXPECT_THAT(read("{count: 2}").devices, ElementsAre("cpu:0", "cpu:1"));
  EXPECT_THAT(read("{devices: cuda:all}").devices, ElementsAre("cuda:all"));
  const WorkersConfig two = read("{devices: [cuda:GPU-a, cuda:GPU-b]}");
  EXPECT_THAT(two.devices, ElementsAre("cuda:GPU-a", "cuda:GPU-b"));
  EXPECT_EQ(two.count, 2);
  EXPECT_FALSE(two.threads_given);
  EXPECT_TRUE(read("{devices: cpu:3, threads: 5}").threads_given);
}

TEST(EvalConfig, DevicesThatAreNoneAreRefused) {
  EXPECT_THAT(ProblemOf(kPlain, {"workers.count=2", "workers.devices=auto"}),
              HasSubstr("key 'workers.count': says how many work on the CPU; it cannot be given "
                        "together with 'devices'"));
  const std::string text = "tasks: [gsm8k]\nengine: {name: emulated}\nworkers:\n  devices: ";
  EXPECT_THAT(ProblemOf(text + "cuda:0\n"),
              StartsWith("/somewhere/eval.yaml:4: key 'workers.devices': found 'cuda:0', expected "
                         "auto, cuda:all,"));
  EXPECT_THAT(ProblemOf(text + "[]\n"),
              StartsWith("/somewhere/eval.yaml:4: key 'workers.devices': "
                         "found an empty list, expected auto, cuda:all,"));
  EXPECT_THAT(ProblemOf("tasks: [gsm8k]\nengine: {name: emulated}\n", {"workers.devices=[]"}),
              StartsWith("--set workers.devices=[]: key 'workers.devices': found an empty list"));
  EXPECT_EQ(ProblemOf(text + "\n"), "") << "a key without a value is one that is not given";
  EXPECT_THAT(ProblemOf(text + "[cpu:0, cuda:GPU-a]\n"), HasSubstr("names a CPU and a GPU"));
  EXPECT_THAT(ProblemOf(text + "[auto, cpu:0]\n"), HasSubstr("'auto' stands alone"));
}

TEST(EvalConfig, PromptsThatCannotBeWrittenAreRefused) {
  const std::string text = std::string(kPlain) + "checkpoint: /tmp\n";
  EXPECT_THAT(ProblemOf(text, {"chat_template=7"}),
              HasSubstr("key 'chat_template': found 7, expected true, false or"));
  EXPECT_THAT(ProblemOf(kPlain, {"chat_template=true"}), HasSubstr("needs a checkpoint"));
  EXPECT_THAT(ProblemOf(text, {"fewshot_as_multiturn=true"}),
              HasSubstr("there are turns only with 'chat_template'"));
  for (const char* day :
       {"2026-1-31", "2026-06-31", "2026-01-31T00:00", "2026-01-31T24:61:00", "today"}) {
    EXPECT_THAT(ProblemOf(text, {fmt::format("chat_date={}", day)}),
                HasSubstr("expected a day such as 2026-01-31"))
        << day;
  }
}

// Settings that decide prompts decide scores, so a run is not resumed with other ones.
TEST(EvalConfig, PromptsDecideScores) {
  const std::string text = std::string(kPlain) + "checkpoint: /tmp\n";
  const auto deciding = [&](const std::vector<std::string>& set) {
    return ToJson(ParseEvalConfig(text, "/somewhere/eval.yaml", {set, ""}), true);
  };
  EXPECT_FALSE(deciding({}).contains("prompts"));
  EXPECT_NE(deciding({}), deciding({"chat_template=true"}));
  EXPECT_NE(deciding({}), deciding({"system_instruction=x"}));
  EXPECT_NE(deciding({"chat_template=true"}),
            deciding({"chat_template=true", "fewshot_as_multiturn=false"}));
  EXPECT_NE(deciding({"chat_template=true"}),
            deciding({"chat_template=true", "chat_date=2026-01-31"}));
  EXPECT_NE(deciding({"chat_template=true", "chat_date=2026-01-31"}),
            deciding({"chat_template=true", "chat_date=2026-01-31T00:00:00"}));
}

TEST(EvalConfig, TasksAndEngineKeysKnowTheirPlaces) {
  const EvalConfig config =
      ParseEvalConfig("tasks: [gsm8k]\nengine:\n  name: emulated\n  delay_ms: 3\n",
                      "/somewhere/eval.yaml", {{"engine.jitter=0.5"}, ""});
  EXPECT_EQ(config.tasks.at(0).where, "/somewhere/eval.yaml:1");
  EXPECT_EQ(config.engine.where.at("delay_ms"), "/somewhere/eval.yaml:4");
  EXPECT_EQ(config.engine.where.at("jitter"), "--set engine.jitter=0.5");
  EXPECT_EQ(config.engine.where.at(""), "/somewhere/eval.yaml:2");
  const EvalConfig other = ParseEvalConfig(kPlain, "/somewhere/eval.yaml", {{"tasks=[mmlu]"}, ""});
  EXPECT_EQ(other.tasks.at(0).where, "--set tasks=[mmlu]");
}

TEST(EvalConfig, SandboxSizesAndProcesses) {
  const EvalConfig config =
      ParseEvalConfig(std::string(kPlain) +
                          "metrics: {sandbox: {memory_bytes: 256MiB, tmpfs_bytes: 65536, "
                          "allow_processes: true, allow_ctypes: true}}\n",
                      "/somewhere/eval.yaml", {});
  EXPECT_EQ(config.metrics.sandbox.memory_bytes, 256u << 20);
  EXPECT_EQ(config.metrics.sandbox.tmpfs_bytes, 65536u);
  EXPECT_TRUE(config.metrics.sandbox.allow_processes);
  EXPECT_TRUE(config.metrics.sandbox.allow_ctypes);
}

/// `levels` lists. Each has nine members, which are nine times the list before it.
std::string ManyLaughs(int levels) {
  std::string text = "  a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha]\n";
  for (int level = 1; level <= levels; ++level) {
    const std::string before = "*a" + std::to_string(level - 1);
    text += "  a" + std::to_string(level) + ": &a" + std::to_string(level) + " [" + before;
    for (int i = 0; i < 8; ++i) text += ", " + before;
    text += "]\n";
  }
  return text;
}

TEST(EvalConfig, AliasesThatExplodeAreRefused) {
  const std::string engine = "tasks: [gsm8k]\nengine:\n  name: emulated\n";
  // 9^40 words could never be written out.
  EXPECT_THAT(ProblemOf(engine + ManyLaughs(40)), HasSubstr("aliases written out"));
  EXPECT_THAT(ProblemOf(engine + ManyLaughs(40), {"engine.name=openai"}),
              HasSubstr("aliases written out"));
  const std::string long_text(1 << 20, 'x');
  std::string texts = engine + "  t: &t " + long_text + "\n  all: [*t";
  for (int i = 0; i < 1000; ++i) texts += ", *t";
  EXPECT_THAT(ProblemOf(texts + "]\n"), HasSubstr("of text, aliases written out"));
  EXPECT_THAT(ProblemOf(engine + "  loop: &l [*l, *l, *l]\n"), Not(""));
  EXPECT_THAT(ProblemOf(engine + "  deep: " + std::string(200, '[') + std::string(200, ']') + "\n"),
              HasSubstr("deep"));
  EXPECT_NE(ProblemOf(engine + "  deep: " + std::string(100'000, '[') + "\n"), "");
}

}  // namespace
}  // namespace evald
