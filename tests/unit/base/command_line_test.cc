#include "base/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "evald/error.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

struct Given {
  std::string file;
  int limit = 3;
  bool quiet = false;
  std::vector<std::string> set;
  std::string resume;
  std::vector<std::string> chosen;
  bool resume_given = false;
};

// One command with an option of each kind.
class Example {
 public:
  explicit Example(Given* given) : line_("prog", "An example.") {
    line_.Version("prog 1.0");
    line_.NeedsCommand();
    line_.AddFlag("-q,--quiet", &given->quiet, "No progress");
    Command run = line_.AddCommand("run", "Runs");
    run.AddOption("file", &given->file, "What").Required();
    run.AddOption("--limit", &given->limit, "How many").Within(1, 10);
    run.AddOption("--set", &given->set, "A value").OneArgument();
    CommandOption resume = run.AddOption("--resume", &given->resume, "Which").ValueOptional();
    run.OnChosen([=] {
      given->chosen.push_back("run");
      given->resume_given = resume.given();
    });
    line_.AddCommand("fail", "Refuses").OnChosen([] {
      throw Error(ErrorKind::kUsage, "fail: one of the two");
    });
  }

  bool Parse(std::vector<std::string> words) {
    words.insert(words.begin(), "prog");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    return line_.Parse(static_cast<int>(argv.size()), argv.data());
  }

  std::string Refusal(std::vector<std::string> words) {
    return CaughtText([&] { Parse(std::move(words)); }, ErrorKind::kUsage);
  }

  CommandLine& line() { return line_; }

 private:
  CommandLine line_;
};

TEST(CommandLine, SetsWhatIsGivenAndKeepsDefaults) {
  Given given;
  EXPECT_TRUE(
      Example(&given).Parse({"run", "a.yaml", "--set", "x=1", "--set", "y=2", "-q", "--resume"}));
  EXPECT_EQ(given.file, "a.yaml");
  EXPECT_EQ(given.limit, 3);
  EXPECT_TRUE(given.quiet);
  EXPECT_EQ(given.set, (std::vector<std::string>{"x=1", "y=2"}));
  EXPECT_TRUE(given.resume_given);
  EXPECT_EQ(given.resume, "");
  EXPECT_EQ(given.chosen, std::vector<std::string>{"run"});
}

TEST(CommandLine, AMistakeNamesTheCommandWhoseHelpSaysMore) {
  Given given;
  // CLI11 2.4 writes the range in other words than 2.3 does.
  EXPECT_THAT(Example(&given).Refusal({"run", "a.yaml", "--limit", "11"}),
              ::testing::AnyOf("--limit: Value 11 not in range 1 to 10; see 'prog run --help'",
                               "--limit: Value 11 not in range [1 - 10]; see 'prog run --help'"));
  EXPECT_EQ(Example(&given).Refusal({"run"}), "file is required; see 'prog run --help'");
  EXPECT_EQ(Example(&given).Refusal({"rnu"}),
            "unknown command 'rnu'; did you mean 'run'?; see 'prog --help'");
  EXPECT_EQ(Example(&given).Refusal({"--wrong"}), "unknown option '--wrong'; see 'prog --help'");
  EXPECT_EQ(Example(&given).Refusal({"run", "a.yaml", "--limt", "3"}),
            "unknown option '--limt'; did you mean '--limit'?; see 'prog run --help'");
  EXPECT_EQ(Example(&given).Refusal({"run", "a.yaml", "--limt=3"}),
            "unknown option '--limt'; did you mean '--limit'?; see 'prog run --help'");
  EXPECT_EQ(Example(&given).Refusal({"run", "a.yaml", "b.yaml"}),
            "unexpected argument 'b.yaml'; see 'prog run --help'");
  EXPECT_EQ(Example(&given).Refusal({"run", "a.yaml", "--limit"}),
            "--limit: expected a value after it; see 'prog run --help'");
  EXPECT_EQ(Example(&given).Refusal({"fail"}), "fail: one of the two; see 'prog fail --help'");
}

TEST(CommandLine, HelpAndVersionArePrintedAndEndTheProgram) {
  Given given;
  testing::internal::CaptureStdout();
  EXPECT_FALSE(Example(&given).Parse({"--version"}));
  EXPECT_FALSE(Example(&given).Parse({"run", "--help"}));
  const std::string printed = testing::internal::GetCapturedStdout();
  EXPECT_NE(printed.find("prog 1.0\n"), std::string::npos);
  EXPECT_NE(printed.find("--limit INT:INT in [1 - 10]"), std::string::npos) << printed;
  EXPECT_TRUE(given.chosen.empty());
}

TEST(CommandLine, CommandsAndOptionsCanBeListed) {
  Given given;
  Example example(&given);
  ASSERT_EQ(example.line().commands().size(), 2u);
  EXPECT_EQ(example.line().commands()[0].name(), "run");
  EXPECT_EQ(example.line().commands()[0].long_options(),
            (std::vector<std::string>{"--help", "--limit", "--set", "--resume"}));
}

TEST(CommandLine, AProgramWithOneAnswerToMistakesEndsWithItsStatus) {
  Given given;
  Example example(&given);
  std::vector<std::string> words{"prog", "run"};
  std::vector<char*> argv{words[0].data(), words[1].data()};
  testing::internal::CaptureStderr();
  EXPECT_EQ(example.line().ParseOrStatus(2, argv.data()), 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "prog: error: file is required; see 'prog run --help'\n");
}

}  // namespace
}  // namespace evald
