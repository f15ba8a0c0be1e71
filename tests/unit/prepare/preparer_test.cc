// evald-prepare reads other people's files and may say or do anything. A caller that waits for it
// still gets an answer or one Error.
#include "orchestrator/prepare/preparer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/file.h"
#include "evald/error.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Whether the process exists and has not ended. If its parent was killed, it may stay a zombie.
bool IsRunning(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string stat{std::istreambuf_iterator<char>(file), {}};
  const size_t state = stat.rfind(") ");
  return state != std::string::npos && stat[state + 2] != 'Z' && stat[state + 2] != 'X';
}

class PreparerTest : public ::testing::Test {
 protected:
  PreparerTest() {
    input_.cache_dir = folder_ / "cache";
    input_.limits.seconds = 600;  // a sanitizer makes some tests slow
  }

  // A program that runs this script.
  Preparer Program(const std::string& script) {
    const fs::path file = folder_ / "evald-prepare";
    std::ofstream(file) << "#!/bin/bash\n" << script << "\n";
    fs::permissions(file, fs::perms::owner_all);
    return Preparer(folder_.path());
  }
  Suite Prepare(const std::string& script) {
    return Program(script).Prepare(
        input_, [](size_t, size_t) {}, [this] { return cancel_.load(); });
  }
  Error ErrorOf(const std::string& script) {
    return Caught([&] { Prepare(script); });
  }
  void ExpectError(const std::string& script, ErrorKind kind, const std::string& words) {
    const Error error = ErrorOf(script);
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(words));
  }

  static constexpr const char* kSuite =
      R"(echo '{"type":"suite","groups":[],"chat_template":"<t>","tokenizer_hash":"abc"}')";

  TemporaryFolder folder_;
  PreparationInput input_;
  std::atomic<bool> cancel_{false};
};

TEST_F(PreparerTest, TakesAnAnswer) {
  const Suite suite = Prepare(kSuite);
  EXPECT_EQ(suite.chat_template, "<t>");
  EXPECT_EQ(suite.tokenizer_hash, "abc");
}

TEST_F(PreparerTest, GivesTheInputAndNoSecrets) {
  ::setenv("EVALD_TEST_TOKEN", "secret", 1);
  input_.data_dir = "/some/data";
  Prepare("cat > " + (folder_ / "input").string() + "; env > " + (folder_ / "env").string() +
          "; ls /proc/$$/fd > " + (folder_ / "fds").string() + "\n" + kSuite);
  const std::string input = ReadFile(folder_ / "input");
  EXPECT_EQ(PreparationInputFromJson(Json::parse(input)).data_dir, "/some/data");
  EXPECT_EQ(ReadFile(folder_ / "env").find("secret"), std::string::npos);
}

TEST_F(PreparerTest, ASuiteHoldsItsTasksInTheCache) {
  std::optional<Suite> suite = Prepare("cat > " + (folder_ / "input").string() + "\n" + kSuite);
  const fs::path list = PreparationInputFromJson(Json::parse(ReadFile(folder_ / "input"))).use;
  EXPECT_EQ(list.parent_path(), input_.cache_dir / "uses");
  EXPECT_TRUE(fs::exists(list));
  suite.reset();
  EXPECT_FALSE(fs::exists(list));
}

TEST_F(PreparerTest, RepeatsWhatItSaysOfAFailure) {
  ExpectError(
      R"(echo '{"type":"error","kind":1,"message":"data.jsonl:7: broken","remedy":"mend it"}'; exit 1)",
      ErrorKind::kInput, "data.jsonl:7: broken; mend it");
}

TEST_F(PreparerTest, NamesWhatWasDoneWhereItBreaksDown) {
  const std::string doing = R"(echo '{"type":"doing","what":"reading x.jsonl"}';)";
  ExpectError(doing + "kill -SEGV $$", ErrorKind::kInput,
              "reading x.jsonl: the process that prepares broke down (signal 11)");
  ExpectError(doing + "exit 7", ErrorKind::kInput, "ended without an answer (status 7)");
  ExpectError(doing + "kill -KILL $$", ErrorKind::kInfrastructure, "was killed, twice");
  ExpectError(kSuite + std::string("; exit 1"), ErrorKind::kInput,
              "ended without an answer (status 1)");
}

TEST_F(PreparerTest, StartsOneThatOthersKillOnceMore) {
  const std::string token = (folder_ / "token").string();
  std::ofstream(folder_ / "token") << "";
  EXPECT_EQ(
      Prepare("if rm " + token + " 2>/dev/null; then kill -KILL $$; fi\n" + kSuite).tokenizer_hash,
      "abc");
}

TEST_F(PreparerTest, EndsOneThatTakesTooLong) {
  input_.limits.seconds = 0.3;
  const int64_t begin = MonotonicMicros();
  ExpectError(
      R"(echo '{"type":"doing","what":"reading x.jsonl"}'; exec sleep 1000)", ErrorKind::kInput,
      "reading x.jsonl: takes longer than preparing may (0.3 s); 'limits.seconds' sets that");
  ExpectError("trap '' TERM; while true; do sleep 0.1; done", ErrorKind::kInput, "limits.seconds");
  EXPECT_LT(MonotonicMicros() - begin, 60'000'000);
}

TEST_F(PreparerTest, EndsOneThatIsCancelled) {
  cancel_ = true;
  ExpectError("exec sleep 1000", ErrorKind::kInfrastructure, "cancelled");
}

TEST_F(PreparerTest, AQuestionThatIsCancelledKillsTheWholeGroupAtOnce) {
  // The program and the child that it started ignore SIGTERM. The child reports its process id
  // before the program is cancelled.
  const fs::path child = folder_ / "child";
  const Preparer preparer =
      Program("trap '' TERM\n(echo $BASHPID > " + child.string() + ".part; mv " + child.string() +
              ".part " + child.string() + "; exec sleep 1000) &\nwait\nsleep 1000");
  int64_t cancelled_us = 0;
  input_.work = PreparationInput::Work::kCheck;
  const auto cancelled = [&] {
    if (cancelled_us == 0 && fs::exists(child)) cancelled_us = MonotonicMicros();
    return cancelled_us != 0;
  };
  EXPECT_THAT(CaughtText([&] { preparer.Ask(input_, cancelled); }, ErrorKind::kInfrastructure),
              HasSubstr("cancelled"));
  // a program that is first asked to end has two seconds
  EXPECT_LT(MonotonicMicros() - cancelled_us, 1'900'000);
  const pid_t pid = std::stoi(ReadFile(child));
  for (int tries = 0; IsRunning(pid) && tries < 500; ++tries) ::usleep(10'000);
  EXPECT_FALSE(IsRunning(pid));
}

TEST_F(PreparerTest, TakesNoMoreThanItsBounds) {
  ExpectError("exec head -c 100000000 /dev/zero", ErrorKind::kInput, "too long to be taken");
  ExpectError(R"x(exec yes "$(printf '{"type":"doing","what":"%100000s"}' x)")x", ErrorKind::kInput,
              "too long to be taken");
}

TEST_F(PreparerTest, TakesNoNonsense) {
  EXPECT_THAT(ErrorOf("echo nonsense").what(), HasSubstr("evald-prepare: not JSON"));
  EXPECT_THAT(ErrorOf("echo '[]'").what(), HasSubstr("evald-prepare"));
  EXPECT_THAT(ErrorOf(R"(echo '{"type":"task","task":{}}')").what(), HasSubstr("definition"));
  EXPECT_EQ(ErrorOf(R"(echo '{"type":"error","kind":99,"message":"x"}')").kind(),
            ErrorKind::kInternal);
}

TEST_F(PreparerTest, SaysWhereTheProgramIsMissing) {
  EXPECT_THAT(
      CaughtText([&] { Preparer(folder_ / "nowhere").Ask(input_); }, ErrorKind::kInfrastructure),
      HasSubstr("nowhere/evald-prepare"));
}

TEST_F(PreparerTest, WhatCannotBeJudgedSaysWhy) {
  input_.work = PreparationInput::Work::kJudge;
  Gate gate;
  gate.name = gate.task = gate.metric = "g";
  input_.judge.policy.gates = {gate};
  const Judgement judgement =
      Program(R"(echo '{"type":"doing","what":"judging r"}'; kill -SEGV $$)").JudgeOrSayWhy(input_);
  EXPECT_EQ(judgement.status, ExitStatus::kUsage);
  EXPECT_THAT(judgement.failure, HasSubstr("judging r: the process that prepares broke down"));
  EXPECT_THAT(
      Program(R"(echo '{"type":"found","found":{"status":0}}')").JudgeOrSayWhy(input_).failure,
      HasSubstr("verdict"));
}

TEST_F(PreparerTest, AnInputComesOutAsItWentIn) {
  PreparationInput input;
  input.work = PreparationInput::Work::kDescribe;
  input.checkpoint = "/c";
  input.weights = input.tokens = true;
  TaskRequest task;
  task.name = "t";
  task.where = "eval.yaml:1";
  task.limit = 3;
  task.repeats = 2;
  task.generation_kwargs = {{"until", {"x"}}};
  task.enable_thinking = false;
  task.think_end.token = 7;
  input.tasks = {task, TaskRequest{"u"}};
  input.task_dirs = {"/a", "/b"};
  input.prompts = {true, "named", ChatDate{86400, false}, "Be brief.", false, {{"effort", "low"}}};
  input.roots = ReadRoots({"/r", "/s"});
  input.limits = {1, 2, 3, 4, 5.5};
  input.threads = 7;
  input.baseline_complete = true;
  input.judge.candidate = "/runs/r";
  input.judge.results = {{"results", {{"t", 0.1}}}};
  input.judge.run_status = ExitStatus::kIncomplete;
  input.judge.problems = {"p"};
  input.judge.page = false;
  input.judge.policy.baseline = "/runs/b";
  Gate gate;
  gate.name = gate.task = gate.metric = "g";
  gate.where = "eval.yaml:7";
  gate.places = {{"metric", "eval.yaml:8: key 'gates.rules[0].metric'"}};
  input.judge.policy.baseline_place = "--baseline";
  input.judge.policy.gates = {gate};
  const PreparationInput back = PreparationInputFromJson(Json::parse(ToJson(input).dump()));
  EXPECT_EQ(ToJson(back), ToJson(input));
  EXPECT_EQ(back.roots.folders(), input.roots.folders());
  EXPECT_EQ(back.tasks[0].limit, 3);
  EXPECT_FALSE(back.tasks[1].limit.has_value());
  EXPECT_EQ(back.tasks[0].enable_thinking, false);
  EXPECT_EQ(back.tasks[0].think_end, task.think_end);
  EXPECT_FALSE(back.tasks[1].enable_thinking.has_value());
  EXPECT_FALSE(back.tasks[1].think_end.given());
  EXPECT_EQ(back.prompts.template_arguments, (Json{{"effort", "low"}}));
  EXPECT_EQ(back.limits.seconds, 5.5);
  EXPECT_EQ(back.judge.policy.gates.at(0).where, "eval.yaml:7");
  EXPECT_EQ(back.judge.policy.gates.at(0).Place("metric"),
            "eval.yaml:8: key 'gates.rules[0].metric'");
  EXPECT_EQ(back.judge.policy.gates.at(0).Place("task"), "eval.yaml:7");
  EXPECT_EQ(back.judge.policy.baseline_place, "--baseline");
}

}  // namespace
}  // namespace evald
