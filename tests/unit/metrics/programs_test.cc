// The metric `passes` from answers to values, with real programs in the sandbox.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/jsonl.h"
#include "evald/error.h"
#include "metrics/program_languages.h"
#include "metrics/sandbox/language.h"
#include "metrics/scorer.h"
#include "tests/unit/metrics/fixtures.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

using ::testing::HasSubstr;

TaskDefinition ProgramTask(const Json& arguments) {
  TaskDefinition task = test::AnswerTask();
  task.name = task.alias = "programs";
  task.unsafe_code = true;
  task.metrics = {{"passes", "", "mean", true, arguments}};
  task.filters = {{"code", {{"code_block", Json::object()}, {"take_first", Json::object()}}}};
  return task;
}

/// The same for answers that are the code itself.
TaskDefinition PlainTask(const Json& arguments) {
  TaskDefinition task = ProgramTask(arguments);
  task.filters = {{"none", {{"take_first", Json::object()}}}};
  return task;
}

std::string Fenced(const std::string& code) { return "Here:\n```\n" + code + "\n```\nDone."; }

std::string RefusalOfTask(const TaskDefinition& task) {
  return RefusalOf([&] { const Scorer scorer(task, nullptr); });
}

class Programs : public ::testing::Test {
 protected:
  void SetUp() override {
    SandboxOptions options;
    options.cpu_seconds = 2;
    options.wall_seconds = 60;
    options.memory_bytes = 256ull << 20;
    try {
      runner_ = MakeCodeRunner(options);
    } catch (const Error& error) {
      GTEST_SKIP() << "this host cannot isolate: " << error.what();
    }
  }

  /// The document's metrics, and the details of its programs in detail_.
  Json Score(const TaskDefinition& task, const PreparedDocument& document,
             const std::vector<std::string>& answers) {
    const Scorer scorer(task, runner_.get());
    scorer.Check(document);
    std::vector<Generation> generations;
    for (size_t i = 0; i < answers.size(); ++i)
      generations.push_back(test::Answer(0, answers[i], static_cast<int>(i)));
    const ScoredDocument score = scorer.Score(document, std::move(generations));
    detail_ = score.detail.is_null() ? Json() : score.detail.begin().value();
    return score.filters.at(0).metrics;
  }

  std::unique_ptr<CodeRunner> runner_;
  Json detail_;
};

PreparedDocument CasesDocument() {
  PreparedDocument document;
  document.target = "Q1";
  document.doc = {
      {"public_test_cases", R"([{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}])"},
      {"private_test_cases", R"([{"input": "5 5\n", "output": "10.0", "testtype": "stdin"}])"},
      {"metadata", "{}"}};
  return document;
}

TaskDefinition LiveCodeBenchTask() {
  return ProgramTask({{"language", "python"},
                      {"cases", {"public_test_cases", "private_test_cases"}},
                      {"metadata", "metadata"},
                      {"preamble", "livecodebench"},
                      {"cpu_seconds", 3}});
}

TEST_F(Programs, ReadAndWrite) {
  const TaskDefinition task = LiveCodeBenchTask();
  EXPECT_EQ(Score(task, CasesDocument(), {Fenced("print(sum(map(int, input().split())))")}),
            Json({{"passes", 1.0}}));
  EXPECT_EQ(Score(task, CasesDocument(), {Fenced("input()\nprint(3)")}), Json({{"passes", 0.0}}));
  EXPECT_EQ(detail_[0]["detail"],
            "test 2 of 2: failed: wrong answer: line 1 is '3', expected '10.0'");
  EXPECT_EQ(detail_[0]["output"], "3\n");
  // Not in the warm interpreter, since the program raises.
  Score(task, CasesDocument(), {Fenced("print('so far')\n1 / 0")});
  EXPECT_EQ(detail_[0]["output"], "so far\n");
  // The imports of LiveCodeBench
  EXPECT_EQ(Score(task, CasesDocument(),
                  {Fenced("d = deque(map(int, sys.stdin.read().split()))\nprint(reduce(add, d))")}),
            Json({{"passes", 1.0}}));
  EXPECT_EQ(Score(task, CasesDocument(), {"no code"}), Json({{"passes", 0.0}}));
}

TEST_F(Programs, CallsOfAFunction) {
  PreparedDocument document = CasesDocument();
  document.doc["metadata"] = R"({"func_name": "pair"})";
  document.doc["public_test_cases"] =
      R"([{"input": "[1, 2]\n\"ä\"", "output": "[3, \"ä\"]", "testtype": "functional"}])";
  document.doc["private_test_cases"] = "[]";
  const TaskDefinition task = LiveCodeBenchTask();
  const std::string right =
      "class Solution:\n    def pair(self, n: List[int], s: str):\n        print('noise')\n"
      "        return sum(n), s";
  EXPECT_EQ(Score(task, document, {Fenced(right)}), Json({{"passes", 1.0}})) << detail_.dump();
  EXPECT_EQ(Score(task, document, {Fenced("def pair(n, s): return [0, s]")}),
            Json({{"passes", 0.0}}));
  EXPECT_THAT(detail_[0]["detail"].get<std::string>(), HasSubstr("wrong answer: [0, 'ä']"));
  for (const char* early : {"import sys\nsys.exit(0)", "import os\nos._exit(0)",
                            "def pair(n, s):\n    raise SystemExit", "def other(): pass"}) {
    EXPECT_EQ(Score(task, document, {Fenced(early)}), Json({{"passes", 0.0}})) << early;
  }
}

TEST_F(Programs, SamplesGivePassAtK) {
  TaskDefinition task = LiveCodeBenchTask();
  task.repeats = 4;
  task.metrics[0].kwargs["k"] = {1, 2, 8};
  task.filters = {{"code", {{"code_block", Json::object()}}}};
  const std::string right = Fenced("print(sum(map(int, input().split())))");
  const Json metrics = Score(task, CasesDocument(), {right, "", "", right});
  EXPECT_DOUBLE_EQ(metrics["pass@1"].get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(metrics["pass@2"].get<double>(), 1 - 1.0 / 6);
  EXPECT_EQ(metrics.size(), 2u);
  EXPECT_EQ(detail_.size(), 4u);

  task.metrics[0].kwargs.erase("k");
  task.filters = {{"code", {{"code_block", Json::object()}, {"take_first", Json::object()}}}};
  task.sample_metrics = {"avg@4", "pass@2", "pass^2"};
  const Json samples = Score(task, CasesDocument(), {right, "", "", right});
  EXPECT_DOUBLE_EQ(samples["passes_avg@4"].get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(samples["passes_pass@2"].get<double>(), 1 - 1.0 / 6);
}

TEST_F(Programs, InTheFormOfMultiPlE) {
  if (!sandbox::MissingTool(*sandbox::FindLanguage("cpp")).empty())
    GTEST_SKIP() << "g++ is not installed";
  TaskDefinition task = ProgramTask({{"language_column", "language"}, {"k", {1}}});
  task.filters = {{"create_test",
                   {{"custom", {{"filter_fn", "!function humaneval/utils.build_predictions"}}}}}};
  PreparedDocument document;
  document.doc = {{"language", "cpp"}, {"prompt", "#include <assert.h>\nint twice(int x) {\n"}};
  document.target = "}\nint main() { assert(twice(4) == 8); }\n";
  EXPECT_EQ(Score(task, document, {"  return 2 * x;"}), Json({{"pass@1", 1.0}}));
  EXPECT_EQ(Score(task, document, {"  return 3 * x;"}), Json({{"pass@1", 0.0}}));
  EXPECT_THAT(detail_[0]["detail"].get<std::string>(), HasSubstr("Aborted"));
  EXPECT_EQ(Score(task, document, {"  return y;"}), Json({{"pass@1", 0.0}}));
  EXPECT_THAT(detail_[0]["detail"].get<std::string>(), HasSubstr("does not compile"));
  document.doc["language"] = "cobol";
  EXPECT_THAT(RefusalOf([&] { Score(task, document, {""}); }), HasSubstr("'cobol' is not known"));
}

TEST_F(Programs, TheFunctionOfHumanevalTakesALanguage) {
  TaskDefinition task = test::CodeTask();
  task.metrics[0].kwargs["language"] = "bash";
  PreparedDocument document;
  document.doc = {{"prompt", "twice() {\n"}};
  document.target = "}\n[[ $(twice 4) = 8 ]]\n";
  EXPECT_EQ(Score(task, document, {"echo $(($1 * 2))"}), Json({{"pass@1", 1.0}}));
  EXPECT_EQ(Score(task, document, {"echo $(($1 * 3))"}), Json({{"pass@1", 0.0}}));
}

TEST_F(Programs, AnswersOfSeveralFiles) {
  TaskDefinition task =
      ProgramTask({{"several_files", true}, {"files", "data"}, {"cases", "tests"}});
  task.filters = {{"files", {{"code_files", Json::object()}, {"take_first", Json::object()}}}};
  PreparedDocument document;
  document.doc = {{"data", {{"table.txt", "7"}, {"main.py", "the answer's own file counts"}}},
                  {"tests", {{"inputs", {"2"}}, {"outputs", {"14"}}}}};
  document.target = "";
  EXPECT_EQ(
      Score(task, document,
            {"```python main.py\nfrom lib.times import times\nprint(times(int(input())))\n```\n"
             "and\n```python:lib/times.py\ndef times(x): return x * int(open('table.txt').read())\n"
             "```\n"}),
      Json({{"passes", 1.0}}))
      << detail_.dump();
  EXPECT_EQ(Score(task, document, {"```python ../main.py\nprint(14)\n```"}),
            Json({{"passes", 0.0}}));
  EXPECT_EQ(Score(task, document, {"nothing"}), Json({{"passes", 0.0}}));
}

// Verdicts of BigCodeBench's own executor (tests/oracle/bigcodebench_golden.py).
TEST_F(Programs, InTheFormOfBigCodeBench) {
  TaskDefinition task = PlainTask({{"stub", "code_prompt"},
                                   {"prompt", "complete_prompt"},
                                   {"unittest", "test"},
                                   {"cpu_seconds", 20}});
  int right = 0, count = 0;
  ForEachJsonLine(EVALD_SOURCE_DIR "/tests/golden/metrics/bigcodebench.jsonl",
                  [&](size_t line, Json&& row) {
                    PreparedDocument document;
                    document.doc = row;
                    document.target = "";
                    const Json metrics = Score(task, document, {row["answer"].get<std::string>()});
                    EXPECT_EQ(metrics["passes"].get<double>(), row["passed"].get<bool>() ? 1 : 0)
                        << "line " << line << ": " << detail_.dump();
                    right += row["passed"].get<bool>() ? 1 : 0;
                    ++count;
                  });
  EXPECT_GE(right, 10);
  EXPECT_GE(count - right, 10);
}

/// Counts programs that are run apart.
class Counting : public CodeRunner {
 public:
  explicit Counting(CodeRunner* runner) : runner_(runner) {}
  ProgramOutcome Run(const std::string& source) override { return runner_->Run(source); }
  std::unique_ptr<BuiltProgram> Build(const ProgramSources& sources,
                                      ProgramOutcome* outcome) override {
    ++built;
    return runner_->Build(sources, outcome);
  }
  Json Isolation() const override { return runner_->Isolation(); }

  int built = 0;

 private:
  CodeRunner* runner_;
};

// Each program adds the numbers of a line: tests "1 2" and "5 5".
TEST_F(Programs, AllTestsAreTriedAtOnce) {
  struct Case {
    const char* code;
    double passes;
    bool apart;  ///< whether processes of their own are asked, too
  };
  const Case cases[] = {
      {"print(sum(map(int, input().split())))", 1, false},
      {"print(sum(map(int, open(0).read().split())))", 1, false},
      {"import sys\nprint(sum(map(int, sys.stdin.buffer.read().split())), file=sys.stdout)", 1,
       false},
      {"import os\nos.write(1, b'%d\\n' % sum(map(int, os.read(0, 99).split())))", 1, false},
      {"import sys\nsys.stdout.write(str(sum(map(int, sys.stdin))) if 0 else "
       "str(sum(map(int, sys.stdin.readline().split()))))\nexit(0)",
       1, false},
      {"import threading\ndef main():\n  print(sum(map(int, input().split())))\n"
       "threading.stack_size(1 << 20)\nthreading.Thread(target=main).start()",
       1, false},
      {"import atexit\natexit.register(print, sum(map(int, input().split())))", 1, false},
      {"if __name__ == '__main__':\n  print(sum(map(int, input().split())))", 1, false},
      // Equal as numbers, which a hash does not see
      {"print('%.2f' % sum(map(int, input().split())))", 1, true},
      // Allowed in a process alone
      {"import os\nos.getcwd()\nprint(sum(map(int, input().split())))", 1, true},
      // A second run in one process differs
      {"import sys\nif hasattr(sys, 'seen'): print('again')\nsys.seen = 1\n"
       "print(sum(map(int, input().split())))",
       1, true},
      {"import os\nprint(sum(map(int, input().split())), flush=True)\nos._exit(0)", 1, true},
      {"print(3)", 0, false},
      {"print(sum(map(int, input().split())) + 0.25)", 0, false},
      {"print(sum(map(int, input().split())), 'x')", 0, false},
      {"print(sum(map(int, input().split())), end='\\n\\n7')", 0, false},
      {"print(1 / 0)", 0, true},
      {"print(sum(map(int, input().split())))\nexit(1)", 0, true},
      {"raise AssertionError('test 0')", 0, true},
      // Would replace its judge
      {"import sys\nsys._getframe(1).f_globals['_hash'] = lambda found: type('', (str,), {"
       "'__eq__': lambda *_: True})()",
       0, true},
      {"raise AssertionError('test 77')", 0, true},
      {"import os\nos._exit(0)", 0, true},
      {"exit(0)", 0, false},
      {"while True: pass", 0, true},
  };
  TaskDefinition task = PlainTask({{"cases", "tests"}, {"cpu_seconds", 1}});
  PreparedDocument document;
  document.target = "";
  document.doc["tests"] = {{"inputs", {"1 2\n", "5 5\n"}}, {"outputs", {"3\n", "10\n"}}};
  const std::unique_ptr<CodeRunner> runner = std::move(runner_);
  for (const Case& one : cases) {
    auto counting = std::make_unique<Counting>(runner.get());
    const Counting& counted = *counting;
    runner_ = std::move(counting);
    EXPECT_EQ(Score(task, document, {one.code}), Json({{"passes", one.passes}}))
        << one.code << detail_.dump();
    EXPECT_EQ(counted.built > 0, one.apart) << one.code;
  }
  runner_.reset();
}

// The text of a place in the program may be the name of another.
TEST_F(Programs, TextsThatAreNamesOfPlaces) {
  TaskDefinition task = PlainTask({{"cases", "tests"}});
  PreparedDocument document;
  document.target = "";
  document.doc["tests"] = {{"inputs", {"{seconds}", "{code}"}},
                           {"outputs", {"{seconds}", "{code}"}}};
  EXPECT_EQ(Score(task, document, {"x = '{tests}{seconds}{function}'\nprint(input())"}),
            Json({{"passes", 1.0}}))
      << detail_.dump();
  document.doc["tests"]["fn_name"] = "f";
  document.doc["tests"]["inputs"] = Json::array({Json::array({"{function}"})});
  document.doc["tests"]["outputs"] = Json::array({Json::array({"{function}"})});
  EXPECT_EQ(Score(task, document, {"def f(x):\n  return '{function}' if x else '{code}'"}),
            Json({{"passes", 1.0}}))
      << detail_.dump();
}

TEST_F(Programs, TabsOfAnAnswer) {
  TaskDefinition task = PlainTask({{"tab_size", 4}, {"prompt", "prompt"}});
  PreparedDocument document;
  document.doc = {{"prompt", "def f():\n    x = 1\n"}};
  document.target = "assert f() == 1";
  EXPECT_EQ(Score(task, document, {"\treturn x"}), Json({{"passes", 1.0}})) << detail_.dump();
  task.metrics[0].kwargs.erase("tab_size");
  EXPECT_EQ(Score(task, document, {"\treturn x"}), Json({{"passes", 0.0}}));
}

TEST(ProgramArguments, AreChecked) {
  EXPECT_THAT(RefusalOfTask(ProgramTask({{"unittest", "test"}, {"language", "c"}})),
              HasSubstr("found 'unittest' beside"));
  EXPECT_THAT(RefusalOfTask(ProgramTask({{"unittest", "test"}, {"cases", "tests"}})),
              HasSubstr("found 'unittest' beside"));
  EXPECT_THAT(RefusalOfTask(ProgramTask({{"tab_size", 100}})), HasSubstr("expected 0 to 16"));
  EXPECT_THAT(RefusalOfTask(ProgramTask({{"language", "c+"}})), HasSubstr("did you mean 'c'"));
  EXPECT_THAT(RefusalOfTask(ProgramTask({{"lang", "c"}})), HasSubstr("unknown argument 'lang'"));
  EXPECT_THAT(RefusalOfTask(ProgramTask({{"language", "c"}, {"language_column", "x"}})),
              HasSubstr("expected one of them"));
  EXPECT_THAT(RefusalOfTask(ProgramTask({{"cpu_seconds", 6000}})), HasSubstr("at most 600"));
  EXPECT_THAT(RefusalOfTask(ProgramTask({{"k", 0}})), HasSubstr("at least 1"));
  EXPECT_THAT(RefusalOfTask(ProgramTask({{"preamble", "other"}})),
              HasSubstr("expected livecodebench"));
  TaskDefinition task = ProgramTask(Json::object());
  task.unsafe_code = false;
  EXPECT_THAT(RefusalOfTask(task), HasSubstr("unsafe_code: true"));
}

TEST(ProgramDocuments, AreCheckedBeforeAnAnswerIs) {
  const Scorer scorer(LiveCodeBenchTask(), nullptr);
  PreparedDocument document = CasesDocument();
  scorer.Check(document);
  document.doc.erase("private_test_cases");
  EXPECT_THAT(RefusalOf([&] { scorer.Check(document); }),
              HasSubstr("no column 'private_test_cases'; did you mean 'public_test_cases'"));
  document = CasesDocument();
  document.doc["public_test_cases"] = document.doc["private_test_cases"] = "[]";
  EXPECT_THAT(RefusalOf([&] { scorer.Check(document); }), HasSubstr("no tests"));
}

TEST(ProgramLanguages, AreKnownBeforeTheRun) {
  EXPECT_EQ(ProgramLanguages(LiveCodeBenchTask(), nullptr), std::set<std::string>{"python"});
  EXPECT_EQ(ProgramLanguages(ProgramTask({{"language", "c++"}}), nullptr),
            std::set<std::string>{"cpp"});
  EXPECT_TRUE(ProgramLanguages(test::AnswerTask(), nullptr).empty());
  RequireProgramLanguages(LiveCodeBenchTask(), nullptr);
}

}  // namespace
}  // namespace evald
