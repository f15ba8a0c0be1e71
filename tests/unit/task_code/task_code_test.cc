// The process of task code, and what it gets: files, time, and no trust.
#include "task_code/task_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include "datasets/task_files.h"
#include "evald/error.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

using ::testing::HasSubstr;

class TaskCodeTest : public ::testing::Test {
 protected:
  /// A process with `code` as the module utils; null if this host isolates no process.
  std::unique_ptr<TaskCode> Start(const std::string& code, double call_seconds = 20) {
    std::ofstream(folder_ / "utils.py") << code;
    TaskCodeOptions options;
    options.allowed = TaskCodeOptions::Allowed::kBoxed;
    options.call_seconds = call_seconds;
    std::unique_ptr<TaskCode> started;
    try {
      started = std::make_unique<TaskCode>(options);
    } catch (const Error& error) {
      reason_ = error.what();
      return nullptr;
    }
    const auto files = std::make_shared<TaskFiles>(std::vector{folder_.path()}, ReadRoots());
    started->ServeFiles([files](const std::string& path) { return files->Wanted(path); });
    return started;
  }
  std::string Function(const std::string& name) const {
    return (folder_.path() / "utils").string() + "." + name;
  }

  TemporaryFolder folder_;
  std::string reason_;
};

#define REQUIRE_CODE(code) \
  if ((code) == nullptr) GTEST_SKIP() << reason_

TEST_F(TaskCodeTest, ScoresDocuments) {
  const auto code = Start(
      "def f(doc, results): return {'n': doc['n'] + len(results), 'kind': "
      "type(results[0]).__name__}\n");
  REQUIRE_CODE(code);
  code->Load(Function("f"), 1);
  const auto score = [&](TaskCode::Results form, const std::vector<Json>& results) {
    return code->ProcessResults(Function("f"), {{"n", 3}}, nullptr, results, form).values;
  };
  EXPECT_EQ(score(TaskCode::Results::kTexts, {"a"}), (Json{{"n", 4}, {"kind", "str"}}));
  EXPECT_EQ(
      score(TaskCode::Results::kPairs, {Json::array({-1.5, true}), Json::array({"-inf", false})}),
      (Json{{"n", 5}, {"kind", "tuple"}}));
  EXPECT_EQ(score(TaskCode::Results::kNumbers, {-2.5}), (Json{{"n", 4}, {"kind", "float"}}));
}

TEST_F(TaskCodeTest, ACallWithoutEndEnds) {
  const auto code = Start("def f(doc, results):\n    while True: pass\n", 1);
  REQUIRE_CODE(code);
  code->Load(Function("f"), 1);
  const auto call = [&] {
    code->ProcessResults(Function("f"), Json::object(), nullptr, {"a"}, TaskCode::Results::kTexts);
  };
  EXPECT_THAT(CaughtText(call, ErrorKind::kInput), HasSubstr("takes longer than task code may"));
}

TEST_F(TaskCodeTest, AggregationsGetValuesAsTheyWere) {
  const std::string text =
      "def f(doc, results): return {'pair': (results[0], 1), 'plain': [1], 'other': (2,)}\n"
      "def g(items):\n"
      "    assert all(type(item) is tuple for item in items)\n"
      "    return ''.join(text for text, one in items)\n";
  const auto scoring = Start(text);
  REQUIRE_CODE(scoring);
  scoring->Load(Function("f"), 1);
  const auto aggregating = Start(text);  // scores are aggregated in another process
  EXPECT_EQ(aggregating->Load(Function("g"), 1).aggregation, "");
  TaskCode::Items items;
  for (const char* answer : {"a", "b", "c"}) {
    const TaskCode::Metrics metrics =
        scoring->ProcessResults(Function("f"), Json::object(), nullptr, {answer},
                                TaskCode::Results::kTexts, {"pair", "plain", "absent"});
    EXPECT_EQ(metrics.values,
              (Json{{"pair", {answer, 1}}, {"plain", {1}}, {"other", Json::array({2})}}));
    ASSERT_EQ(metrics.python.size(), 1u);
    const Json packed = Json::array({metrics.values["pair"], metrics.python["pair"]});
    aggregating->AddItems(Function("g"), Json::array({packed}), &items);
  }
  EXPECT_EQ(aggregating->Aggregate(Function("g"), items, ""), "abc");
}

TEST_F(TaskCodeTest, FiltersOneDocumentAndChecksAll) {
  const auto code = Start(
      "def f(resps, docs):\n"
      "    return [[t + str(d['n']) + type(resps).__name__ for t in r] for r, d in zip(resps, "
      "docs)]\n"
      "class Count:\n"
      "    def __init__(self, word): self.word = word\n"
      "    def apply(self, resps, docs): return ([self.word * len(docs)] for _ in docs)\n");
  REQUIRE_CODE(code);
  for (const char* name : {"f", "Count"}) EXPECT_EQ(code->Load(Function(name), 1).name, name);
  TaskCode::FilterStep step{.custom = true};
  TaskCode::Filtered filtered =
      code->Filter(Function("f"), step, Json::array({"a"}), {{"n", 3}}, nullptr);
  EXPECT_EQ(filtered.responses, Json::array({"a3list"}));
  EXPECT_FALSE(filtered.lazy);
  step = {.settings = {{"word", "x"}}, .lazy = true};
  filtered = code->Filter(Function("Count"), step, Json::array({"a"}), {{"n", 3}}, nullptr);
  EXPECT_EQ(filtered.responses, Json::array({"x"}));
  EXPECT_TRUE(filtered.lazy);
  const auto check = [&](const std::vector<int64_t>& documents) {
    TaskCode::Items items;
    for (const int64_t document : documents) {
      code->AddItems(Function("Count"),
                     Json::array({{{"doc_id", document},
                                   {"document", PackedDocument({{"n", 3}}, nullptr)},
                                   {"given", {"a"}},
                                   {"left", {"x"}}}}),
                     &items);
    }
    return code->CheckFilter(Function("Count"), step, items, 1);
  };
  EXPECT_FALSE(check({4}));
  const auto differs = check({4, 9});
  ASSERT_TRUE(differs);
  EXPECT_EQ(differs->document, 4);
  EXPECT_EQ(differs->alone, "['x']");
  EXPECT_EQ(differs->together, "['xx']");
}

TEST_F(TaskCodeTest, CallsAMetricAndLetsNoProgramStart) {
  const auto code = Start(
      "import os\n"
      "def f(references, predictions, k=0): return (references[0], len(predictions[0]) + k)\n"
      "def g(references, predictions):\n"
      "    try: os.fork()\n"
      "    except OSError: return 0\n");
  REQUIRE_CODE(code);
  for (const char* name : {"f", "g"}) code->Load(Function(name), 1);
  TaskCode::MetricStep step{
      .name = "f", .settings = {{"k", 2}}, .takes = TaskCode::MetricStep::Takes::kFunction};
  const Json value = code->Metric(Function("f"), step, "gold", "abc");
  ASSERT_EQ(value.size(), 2u);  // a tuple, which JSON cannot hold
  EXPECT_EQ(value[0], (Json{"gold", 5}));
  step.takes = TaskCode::MetricStep::Takes::kNumber;
  EXPECT_THAT(
      CaughtText([&] { code->Metric(Function("f"), step, "gold", "abc"); }, ErrorKind::kInput),
      HasSubstr("of type tuple, expected a number"));
  step.name = "g";
  step.settings = Json::object();
  EXPECT_THAT(
      CaughtText([&] { code->Metric(Function("g"), step, "gold", "abc"); }, ErrorKind::kInput),
      HasSubstr("tries to start a program (os.fork)"));
}

TEST_F(TaskCodeTest, ACallThatIsStoppedEndsSoon) {
  const auto code = Start("def g(items):\n    while True: pass\n", 600);
  REQUIRE_CODE(code);
  code->Load(Function("g"), 1);
  TaskCode::Items items;
  code->AddItems(Function("g"), Json::array({Json::array({1})}), &items);
  std::atomic<bool> stopped{false};
  code->StopWhen([&] { return stopped.load(); });
  std::thread soon([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    stopped = true;
  });
  const auto begin = std::chrono::steady_clock::now();
  const auto call = [&] { code->Aggregate(Function("g"), items, "acc"); };
  EXPECT_THAT(CaughtText(call, ErrorKind::kInfrastructure), HasSubstr("was stopped"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  soon.join();
}

TEST_F(TaskCodeTest, EveryFileThatWasHandedOverOrSoughtIsKnown) {
  const auto code = Start(
      "import os\nHERE = os.path.dirname(__file__)\n"
      "try:\n    open(HERE + '/absent.txt')\nexcept OSError:\n    pass\n"
      "def f(doc, results): return {'x': len(open(HERE + '/bytes.bin', 'rb').read())}\n");
  REQUIRE_CODE(code);
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  std::ofstream(folder_ / "bytes.bin") << bytes;
  code->Load(Function("f"), 1);
  const Json metrics =
      code->ProcessResults(Function("f"), Json::object(), nullptr, {"a"}, TaskCode::Results::kTexts)
          .values;
  EXPECT_EQ(metrics, (Json{{"x", 256}}));
  EXPECT_EQ(code->handed().at((folder_ / "bytes.bin").string()), bytes);
  const Json used = code->Used();
  EXPECT_EQ(used.at("files").size(), 2u);
  EXPECT_EQ(used.at("absent"), (Json{{(folder_ / "absent.txt").string(), false}}));
}

TEST(TaskCodeText, BytesGoAsLatin1AndComeBack) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  EXPECT_EQ(FromLatin1(ToLatin1(bytes)), bytes);
  EXPECT_EQ(ToLatin1("\xe9"), "é");
}

}  // namespace
}  // namespace evald
