#include "worker/command/scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "evald/error.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald::command {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::vector<CommandScore> kScores = {{"acc", "$.r[0].acc", true}};

std::string Refusal(const std::string& text) {
  return RefusalOf([&] { ScoresIn(text, "out.json", kScores); });
}

TEST(Scores, AreTakenFromTheirPlaces) {
  EXPECT_EQ(ScoresIn(R"({"r": [{"acc": 0.125, "n": 3}]})", "out.json",
                     {{"acc", "$.r[0].acc", true}, {"n", "$['r'][0].n", true}}),
            Json({{"acc", 0.125}, {"n", 3.0}}));
}

TEST(Scores, EveryDigitStays) {
  EXPECT_EQ(ScoresIn(R"({"r": [{"acc": 0.30000000000000004}]})", "", kScores).dump(),
            R"({"acc":0.30000000000000004})");
}

TEST(Scores, WhatIsNoFiniteNumberIsRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"NaN", "$.r[0].acc is NaN, expected a finite number"},
      {"Infinity", "$.r[0].acc is Infinity"},
      {"-Infinity", "$.r[0].acc is -Infinity"},
      {"null", "$.r[0].acc is null"},
      {"true", "$.r[0].acc is true"},
      {"\"0.5\"", "$.r[0].acc is \"0.5\""},
      {"{\"value\": 1}", "$.r[0].acc is {\"value\":1}"},
  };
  for (const auto& [value, problem] : cases) {
    EXPECT_THAT(Refusal("{\"r\": [{\"acc\": " + std::string(value) + "}]}"),
                AllOf(HasSubstr("out.json: score 'acc'"), HasSubstr(problem)));
  }
}

// Python's json writes them, also where nobody looks.
TEST(Scores, NaNElsewhereDoesNoHarm) {
  EXPECT_EQ(ScoresIn(R"({"x": [NaN, -Infinity, "a \" NaN", {"NaN": Infinity}],
                         "r": [{"acc": 1}]})",
                     "", kScores),
            Json({{"acc", 1.0}}));
  EXPECT_EQ(ScoresIn(R"({"x": "NaN \\", "y": NaN, "r": [{"acc": 2}]})", "", kScores),
            Json({{"acc", 2.0}}));
}

TEST(Scores, AbsentMembersAndBrokenTextsAreNamed) {
  EXPECT_THAT(Refusal(R"({"r": []})"),
              HasSubstr("there is no $.r[0]: $.r is a list of 0 elements"));
  EXPECT_THAT(Refusal("{\"r\": "), HasSubstr("out.json"));
  EXPECT_THAT(Refusal(""), HasSubstr("out.json"));
  EXPECT_THAT(Refusal("{\"r\": [{\"acc\": NaN"), HasSubstr("out.json"));
}

class Results : public ::testing::Test {
 protected:
  void Write(const fs::path& file, const std::string& text = "{\"r\": [{\"acc\": 1}]}") {
    fs::create_directories((folder_ / file).parent_path());
    std::ofstream(folder_ / file) << text;
  }
  Json Read(const std::string& pattern) {
    CommandSpec spec;
    spec.results_file = pattern;
    spec.scores = kScores;
    return ReadScores(folder_, spec);
  }
  std::string ReadRefusal(const std::string& pattern) {
    return RefusalOf([&] { Read(pattern); });
  }

  TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path() / "with [brackets] * and \\";
};

TEST_F(Results, AreOneFileBelowTheFolder) {
  Write("logs/2026_abc.json");
  EXPECT_EQ(Read("logs/2026_abc.json"), Json({{"acc", 1.0}}));
  EXPECT_EQ(Read("logs/*.json"), Json({{"acc", 1.0}}));
  EXPECT_EQ(Read("*/2026_*"), Json({{"acc", 1.0}}));
  EXPECT_THAT(ReadRefusal("out.json"), HasSubstr("there is no out.json in"));
  EXPECT_THAT(ReadRefusal("*.json"), HasSubstr("there is no *.json in"));
  Write("logs/2027_abc.json");
  EXPECT_THAT(ReadRefusal("logs/*.json"),
              AllOf(HasSubstr("2 files in"), HasSubstr("logs/2026_abc.json, logs/2027_abc.json")));
}

TEST_F(Results, AreARegularFile) {
  fs::create_directories(folder_ / "folder");
  EXPECT_THAT(ReadRefusal("folder"), HasSubstr("is no regular file"));
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(ReadRefusal("pipe"), HasSubstr("is no regular file"));
  std::ofstream(temporary_.path() / "secret") << R"({"acc": 1.0})";
  fs::create_symlink(temporary_.path() / "secret", folder_ / "absolute");
  fs::create_symlink("../secret", folder_ / "relative");
  EXPECT_THAT(ReadRefusal("absolute"), HasSubstr("in the command's folder"));
  EXPECT_THAT(ReadRefusal("relative"), HasSubstr("in the command's folder"));
  Write("logs/1.json");
  fs::create_symlink("logs/1.json", folder_ / "last");
  EXPECT_EQ(Read("last"), Json({{"acc", 1.0}})) << "a link within the folder is followed";
}

TEST_F(Results, AreBounded) {
  Write("big");
  fs::resize_file(folder_ / "big", kResultsBytesMax + 1);
  EXPECT_THAT(ReadRefusal("big"), HasSubstr("big"));
}

}  // namespace
}  // namespace evald::command
