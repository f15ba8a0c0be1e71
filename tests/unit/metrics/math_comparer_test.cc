// Answers of mathematics by value: what is computed, what is kept, and what is given up. A package
// that stands for math-verify says what the tests need; tests/golden/metrics/math_verify.jsonl has
// what math-verify itself says.
#include "metrics/math_comparer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include "base/file.h"
#include "base/jsonl.h"
#include "evald/error.h"
#include "metrics/math_metric.h"
#include "metrics/scorer.h"
#include "tests/unit/metrics/fixtures.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using Verdict = MathComparer::Verdict;

constexpr const char* kPackage = R"(
import os

def parse(text, parsing_timeout=5):
    assert parsing_timeout is None
    return [text]

def verify(gold, target, float_rounding=6, numeric_precision=15, strict=True,
           allow_set_relation_comp=False, timeout_seconds=5):
    assert timeout_seconds is None
    answer = target[0]
    if answer == "loop":
        while True:
            try:
                while True:
                    pass
            except Exception:
                pass
    if answer == "a long step of C":
        sum(range(10 ** 13))
    if answer == "ends":
        os._exit(3)
    if answer == "rounds":
        return float_rounding == 2
    return gold[0] == answer or gold[0] == "\\boxed{" + answer + "}"
)";

// A virtual environment in which the package is installed. It does not lie in /tmp, since a process
// in the sandbox has a /tmp of its own.
class MathTest : public ::testing::Test {
 protected:
  MathTest() {
    std::string name = "/var/tmp/evald-math-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder in /var/tmp");
    venv_ = name;
    Write("pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n");
    fs::create_directories(venv_ / "bin");
    fs::create_symlink("/usr/bin/python3", venv_ / "bin/python");
    for (int minor = 9; minor < 16; ++minor) {
      const std::string packages = "lib/python3." + std::to_string(minor) + "/site-packages/";
      Write(packages + "math_verify/__init__.py", kPackage);
      Write(packages + "math_verify-9.9.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: math_verify\nVersion: 9.9\n");
    }
    options_.python = venv_ / "bin/python";
  }
  ~MathTest() override {
    std::error_code ignored;
    fs::remove_all(venv_, ignored);
  }

  void Write(const std::string& name, const std::string& content) const {
    fs::create_directories((venv_ / name).parent_path());
    std::ofstream(venv_ / name) << content;
  }

  // False if this host isolates no process.
  bool CanRun() {
    try {
      const MathVerifier tried(options_);
      versions_ = tried.versions();
      return true;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kInfrastructure) throw;
      reason_ = error.what();
      return false;
    }
  }

  MathComparer Comparer(double seconds = 5) const {
    MathComparer comparer(options_, seconds);
    comparer.KeepIn(folder_ / "cache");
    return comparer;
  }

  fs::path venv_;
  TemporaryFolder folder_;
  TaskCodeOptions options_;
  Json versions_;
  std::string reason_;
};

#define REQUIRE_MATH() \
  if (!CanRun()) GTEST_SKIP() << reason_

TEST_F(MathTest, ComparesEachPairOnce) {
  REQUIRE_MATH();
  EXPECT_EQ(versions_["packages"], Json({{"math-verify", "9.9"}}));
  MathComparer first = Comparer();
  EXPECT_EQ(first.Compare("5", "5", Json::object()), Verdict::kEqual);
  EXPECT_EQ(first.Compare("5", "6", Json::object()), Verdict::kUnequal);
  EXPECT_EQ(first.Compare("$5$", "5", Json::object()), Verdict::kUnequal) << "it has its own marks";
  EXPECT_EQ(first.Compare("5", "5", Json::object()), Verdict::kEqual);
  EXPECT_EQ(first.Compare("5", "rounds", Json::object()), Verdict::kUnequal);
  EXPECT_EQ(first.Compare("5", "rounds", {{"float_rounding", 2}}), Verdict::kEqual);
  EXPECT_EQ(first.computed(), 5);
  MathComparer second = Comparer();
  EXPECT_EQ(second.Compare("5", "6", Json::object()), Verdict::kUnequal);
  EXPECT_EQ(second.Compare("5", "5", Json::object()), Verdict::kEqual);
  EXPECT_EQ(second.computed(), 0);
}

TEST_F(MathTest, PassesOverBrokenLinesOfTheCache) {
  REQUIRE_MATH();
  EXPECT_EQ(Comparer().Compare("5", "5", Json::object()), Verdict::kEqual);
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "cache" / "math")) {
    if (!entry.is_regular_file()) continue;
    ++files;
    const std::string line = ReadFile(entry.path());
    std::ofstream(entry.path()) << "broken\n"
                                << std::string(64, 'a') << " neither\n"
                                << line << line.substr(0, 70);
  }
  EXPECT_EQ(files, 1);
  MathComparer again = Comparer();
  EXPECT_EQ(again.Compare("5", "5", Json::object()), Verdict::kEqual);
  EXPECT_EQ(again.computed(), 0);
}

TEST_F(MathTest, OtherVersionsAndLimitsHaveOtherVerdicts) {
  REQUIRE_MATH();
  EXPECT_EQ(Comparer().Compare("5", "5", Json::object()), Verdict::kEqual);
  MathComparer other = Comparer(7);
  EXPECT_EQ(other.Compare("5", "5", Json::object()), Verdict::kEqual);
  EXPECT_EQ(other.computed(), 1);
}

TEST_F(MathTest, GivesUpPairsThatTakeTooLong) {
  REQUIRE_MATH();
  MathComparer comparer = Comparer(0.3);
  for (const char* answer : {"loop", "a long step of C", "ends"}) {
    EXPECT_EQ(comparer.Compare("5", answer, Json::object()), Verdict::kOverLimit) << answer;
    EXPECT_EQ(comparer.Compare("5", answer, Json::object()), Verdict::kOverLimit) << answer;
    EXPECT_EQ(comparer.Compare(answer, "5", Json::object()), Verdict::kUnequal)
        << "after " << answer;
  }
  EXPECT_EQ(comparer.computed(), 6);
  const std::string most(MathComparer::kTextBytesMax, '1');
  EXPECT_EQ(comparer.Compare(most, "1", Json::object()), Verdict::kUnequal);
  EXPECT_EQ(comparer.Compare("1", most + "1", Json::object()), Verdict::kTooLong);
  EXPECT_EQ(comparer.computed(), 7);
}

TEST_F(MathTest, NamesTheLineThatInstallsThePackage) {
  REQUIRE_MATH();
  fs::remove_all(venv_ / "lib");
  fs::create_directories(venv_ / "lib");
  EXPECT_THAT(CaughtText([&] { MathVerifier{options_}; }),
              AllOf(HasSubstr("the metric math_verify takes the Python package math-verify"),
                    HasSubstr(options_.python + " -m pip install math-verify")));
}

TaskDefinition MathTask() {
  TaskDefinition task = test::AnswerTask();
  task.filters = {{"none", {{"take_first", Json::object()}}}};
  task.metrics = {{"math_verify", "", "mean", true, Json::object()},
                  {"exact_match", "", "mean", true, Json::object()}};
  return task;
}

FilterScore MathScoreOf(const TaskDefinition& task, const Json& target, MathComparer* comparer,
                        const std::vector<std::string>& answers) {
  PreparedDocument document;
  document.target = target;
  std::vector<Generation> generations;
  for (size_t i = 0; i < answers.size(); ++i)
    generations.push_back(test::Answer(0, answers[i], static_cast<int>(i)));
  return Scorer(task, nullptr, nullptr, comparer)
      .Score(document, std::move(generations))
      .filters.at(0);
}

TEST_F(MathTest, IsAMetricAmongOthers) {
  REQUIRE_MATH();
  MathComparer comparer = Comparer(0.3);
  TaskDefinition task = MathTask();
  EXPECT_EQ(MathScoreOf(task, "$5$", &comparer, {"$5$"}).metrics,
            Json({{"math_verify", 1.0}, {"exact_match", 1.0}}));
  EXPECT_EQ(MathScoreOf(task, 5, &comparer, {"5"}).metrics,
            Json({{"math_verify", 1.0}, {"exact_match", 1.0}}));
  const FilterScore given_up = MathScoreOf(task, "loop", &comparer, {"loop"});
  EXPECT_EQ(given_up.metrics, Json({{"math_verify", 0.0}, {"exact_match", 1.0}}));
  EXPECT_THAT(given_up.fallbacks, ElementsAre(Pair("math_verify: time limit", 1)));
  task.multiple_target = true;
  EXPECT_EQ(MathScoreOf(task, Json::array({"6", "5"}), &comparer, {"5"}).metrics,
            Json({{"math_verify", 1.0}, {"exact_match", 1.0}}));
}

TEST_F(MathTest, ScoresEachOfSeveralSamples) {
  REQUIRE_MATH();
  MathComparer comparer = Comparer();
  TaskDefinition task = MathTask();
  task.metrics.resize(1);
  task.repeats = 4;
  task.sample_metrics = {"avg@4", "pass@2", "maj@3"};
  const Json metrics = MathScoreOf(task, "5", &comparer, {"6", "5", "5", "7"}).metrics;
  EXPECT_EQ(metrics["math_verify"], 0.0);
  EXPECT_EQ(metrics["math_verify_avg@4"], 0.5);
  EXPECT_EQ(metrics["math_verify_maj@3"], 1.0);
  EXPECT_NEAR(metrics["math_verify_pass@2"].get<double>(), 1 - 1.0 / 6, 1e-12);
  EXPECT_EQ(comparer.computed(), 3);
}

TEST(MathMetric, RefusesWhatItDoesNotTake) {
  TaskDefinition task = MathTask();
  const auto refused = [&](Json kwargs) {
    task.metrics[0].kwargs = std::move(kwargs);
    return CaughtText([&] { const Scorer scorer(task, nullptr); });
  };
  EXPECT_EQ(refused({{"float_rounding", 2}, {"strict", false}}), "");
  EXPECT_THAT(refused({{"rounding", 2}}), HasSubstr("math_verify has no argument 'rounding'"));
  EXPECT_THAT(refused({{"float_rounding", -1}}), HasSubstr("float_rounding"));
  EXPECT_THAT(refused({{"strict", "yes"}}), HasSubstr("strict"));
  task.metrics = {{"math_verify", "", "f1", true, Json::object()}};
  EXPECT_THAT(CaughtText([&] { const Scorer scorer(task, nullptr); }),
              HasSubstr("the metric 'math_verify' gives a number"));
}

// Needs a Python with math-verify of the version that the golden file names.
TEST(MathVerify, SaysWhatMathVerifySays) {
  const char* const python = std::getenv("EVALD_MATH_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "EVALD_MATH_PYTHON names no Python with math-verify";
  const std::string path = EVALD_SOURCE_DIR "/tests/golden/metrics/math_verify.jsonl";
  TaskCodeOptions options;
  options.python = python;
  MathVerifier verifier(options);
  int pairs = 0, equal = 0;
  ForEachJsonLine(path, [&](size_t, Json&& line) {
    if (line.contains("packages")) {
      ASSERT_EQ(verifier.versions()["packages"]["math-verify"], line["packages"]["math-verify"]);
      return;
    }
    const auto verdict = verifier.Compare(line["gold"], line["answer"], Json::object());
    EXPECT_EQ(verdict == MathVerifier::Verdict::kEqual, line["equal"].get<bool>()) << ToLine(line);
    ++pairs;
    equal += line["equal"].get<bool>() ? 1 : 0;
  });
  EXPECT_EQ(pairs, 1000);
  EXPECT_GT(equal, 300);
  EXPECT_LT(equal, 700);
}

}  // namespace
}  // namespace evald
