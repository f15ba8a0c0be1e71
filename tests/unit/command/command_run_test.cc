// A command as a whole: a program that asks the model of an engine and writes its scores.
#include "worker/command/command_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "../endpoint/scripted_engine.h"
#include "../endpoint/support.h"
#include "base/jsonl.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald::command {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::chrono::seconds kPatience{60};

// What a client does: asks for the models, with the key.
constexpr const char* kHarness = R"(
import json, os, urllib.request
base = os.environ["OPENAI_BASE_URL"]
call = urllib.request.Request(base + "/completions",
    json.dumps({"model": os.environ["EVALD_MODEL"], "prompt": "def ", "max_tokens": 4,
                "temperature": 0}).encode(),
    {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"})
answer = json.load(urllib.request.urlopen(call))
text = answer["choices"][0]["text"]
print("text:", text)
json.dump({"length": answer["usage"]["completion_tokens"], "text": text,
           "config": os.path.exists(os.environ["EVALD_CHECKPOINT"] + "/config.json")},
          open(os.environ["EVALD_OUTPUT"] + "/out.json", "w"))
)";

class CommandRunTest : public ::testing::Test {
 protected:
  CommandOrder Order(std::vector<std::string> words) {
    CommandOrder order;
    order.task = "mine";
    order.spec.command = std::move(words);
    order.spec.results_file = "out.json";
    order.spec.scores = {{"score", "$.score", true}};
    order.checkpoint = endpoint::test::Checkpoint();
    order.folder = folder_ / "commands/mine/1.1";
    order.log = folder_ / "logs/command-mine.log";
    return order;
  }
  CommandOrder Shell(const std::string& script) { return Order({"sh", "-c", script}); }

  Json ScoresOf(Engine* engine, const CommandOrder& order) {
    CommandRun run(engine, order);
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < until) {
      if (const auto answer = run.Wait(std::chrono::milliseconds(50)))
        return ParseJson(answer->text, "the answer");
    }
    ADD_FAILURE() << "it did not end";
    return {};
  }
  std::string Failure(const CommandOrder& order, ErrorKind kind = ErrorKind::kInput) {
    return CaughtText([&] { ScoresOf(&engine_, order); }, kind);
  }

  TemporaryFolder folder_;
  endpoint::test::ScriptedEngine engine_;
};

TEST_F(CommandRunTest, AProgramAsksTheModelAndItsScoresAreTaken) {
  const auto engine = endpoint::test::LoadedEngine();
  CommandOrder order = Order({"python3", "-c", kHarness});
  order.spec.scores = {{"tokens", "$.length", true}};
  EXPECT_EQ(ScoresOf(engine.get(), order), Json({{"tokens", 4.0}}));
  const Json written = ParseJson(ReadFile(order.folder / "out.json"), "out.json");
  EXPECT_EQ(written["config"], true);
  EXPECT_THAT(ReadFile(order.log), AllOf(HasSubstr("== evald, "), HasSubstr("text: ")));
  // The engine is free again.
  EXPECT_EQ(engine->pending(), 0U);
  EXPECT_EQ(ScoresOf(engine.get(),
                     [&] {
                       CommandOrder again = order;
                       again.folder = folder_ / "commands/mine/1.2";
                       return again;
                     }()),
            Json({{"tokens", 4.0}}));
}

TEST_F(CommandRunTest, PlaceholdersArePutIn) {
  CommandOrder order = Order(
      {"sh", "-c",
       "test $1 = $OPENAI_BASE_URL && test $2 = $EVALD_MODEL && test $3 = $EVALD_CHECKPOINT && "
       "test $4 = $PWD && test \"$5\" = '/from/{here}' && test $X = $4/x && "
       "test $6 = $OPENAI_API_KEY && echo '{\"score\": 1}' > r-$2.json",
       "sh", "{base_url}", "{model}", "{checkpoint}", "{output}", "{eval_dir}/{{here}}",
       "{api_key}"});
  order.spec.eval_dir = "/from";
  order.spec.environment = {{"X", "{output}/x"}};
  order.spec.results_file = "r-{model}.json";
  EXPECT_EQ(ScoresOf(&engine_, order), Json({{"score", 1.0}}));
}

TEST_F(CommandRunTest, AProgramByARelativePathIsBesideTheFile) {
  CommandOrder order = Order({"bin/mine"});
  order.spec.eval_dir = folder_.path();
  folder_.Write("bin/mine", "#!/bin/sh\necho '{\"score\": 2}' > out.json\n");
  std::filesystem::permissions(folder_ / "bin/mine", std::filesystem::perms::owner_all);
  EXPECT_EQ(ScoresOf(&engine_, order), Json({{"score", 2.0}}));
}

TEST_F(CommandRunTest, FailuresAreNamedWithTheLastOutput) {
  EXPECT_THAT(Failure(Shell("for i in $(seq 100); do echo line $i; done; exit 7")),
              AllOf(HasSubstr("the command 'sh' ended with exit status 7; its output ("),
                    HasSubstr("logs/command-mine.log) ends:\\nline 81\\n"), HasSubstr("line 100"),
                    Not(HasSubstr("line 80\\n"))));
  EXPECT_THAT(Failure(Shell("kill -9 $$")),
              HasSubstr("was ended by signal 9 (Killed); it printed nothing"));
  EXPECT_THAT(Failure(Order({"no-such-program-anywhere"})),
              AllOf(HasSubstr("'no-such-program-anywhere' cannot be started: No such file"),
                    HasSubstr("install it")));
  EXPECT_THAT(Failure(Shell("echo hello")),
              AllOf(HasSubstr("the command wrote no results: there is no out.json in"),
                    HasSubstr("hello")));
  EXPECT_THAT(Failure(Shell("echo '{\"score\": NaN}' > out.json")),
              HasSubstr("$.score is NaN, expected a finite number"));
  EXPECT_THAT(Failure(Shell("echo '{\"scores\": 1}' > out.json")),
              HasSubstr("there is no $.score: $ is an object with 'scores'"));
  EXPECT_THAT(Failure(Shell("echo '{' > out.json")), HasSubstr("out.json"));
}

TEST_F(CommandRunTest, TheTimeLimitIsNamed) {
  CommandOrder order = Shell("echo waiting; sleep 600");
  order.spec.time_limit_s = 0.5;
  EXPECT_THAT(Failure(order), AllOf(HasSubstr("was ended after its time limit of 0.5 s"),
                                    HasSubstr("waiting"), HasSubstr("'time_limit' sets it")));
}

// The program is not at fault: another attempt may succeed.
TEST_F(CommandRunTest, ABrokenEngineIsTheWorkersFailure) {
  engine_.Break();
  engine_.Fail(Error(ErrorKind::kInfrastructure, "a kernel failed"));
  EXPECT_THAT(
      Failure(Order({"python3", "-c", std::string(kHarness) + "\nimport time; time.sleep(600)"}),
              ErrorKind::kInfrastructure),
      HasSubstr("the model no longer answer"));
}

class GivenServerEngine : public endpoint::test::ScriptedEngine {
 public:
  std::optional<ServedApi> Api() override { return api; }
  ServedApi api{"http://127.0.0.1:9", "", "", "served", [this] { return alive.load(); }};
  std::atomic<bool> alive{true};
};

TEST_F(CommandRunTest, AServersOwnApiIsGiven) {
  GivenServerEngine engine;
  engine.api.key = "the-key";
  EXPECT_EQ(ScoresOf(&engine, Shell("test $OPENAI_BASE_URL = http://127.0.0.1:9/v1 && "
                                    "test $OPENAI_API_KEY = the-key && test $EVALD_MODEL = served "
                                    "&& echo '{\"score\": 1}' > out.json")),
            Json({{"score", 1.0}}));
  engine.api.unix_socket = folder_ / "socket";
  CommandOrder order = Shell(
      "case $OPENAI_BASE_URL in http://127.0.0.1:9/v1) exit 1;; http://127.0.0.1:*/v1) echo "
      "'{\"score\": 1}' > out.json;; esac");
  order.folder = folder_ / "second";
  EXPECT_EQ(ScoresOf(&engine, order), Json({{"score", 1.0}}));
}

TEST_F(CommandRunTest, AServerThatEndedIsTheWorkersFailure) {
  GivenServerEngine engine;
  engine.alive = false;
  EXPECT_THAT(
      CaughtText([&] { ScoresOf(&engine, Shell("sleep 600")); }, ErrorKind::kInfrastructure),
      HasSubstr("the model no longer answers"));
  EXPECT_THAT(CaughtText([&] { ScoresOf(&engine, Shell("exit 1")); }, ErrorKind::kInfrastructure),
              ::testing::AnyOf(HasSubstr("when the model no longer answered"),
                               HasSubstr("the model no longer answers")));
}

}  // namespace
}  // namespace evald::command
