// Metrics of generated answers against the harness's own process_results, on odd answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/file.h"
#include "base/jsonl.h"
#include "evald/error.h"
#include "metrics/process_results.h"
#include "metrics/scorer.h"
#include "tests/unit/metrics/fixtures.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

// A generate_until task whose functions may run.
TaskDefinition TaskWith(std::vector<MetricSpec> metrics, bool several = false) {
  TaskDefinition task = test::AnswerTask();
  task.filters = {{"none", {{"take_first", Json::object()}}}};
  task.metrics = std::move(metrics);
  task.multiple_target = several;
  task.sources["code"] = Json::object();
  return task;
}

MetricSpec Spec(const std::string& name, const std::string& function,
                const std::string& aggregation, Json kwargs = Json::object()) {
  return {name, function, aggregation, true, std::move(kwargs)};
}

Json RunCase(const Json& entry) {
  std::vector<MetricSpec> metrics;
  for (const Json& metric : entry.at("metrics")) {
    const auto name = metric.at("metric").get<std::string>();
    metrics.push_back(Spec(name, "", name == "exact_match" ? "mean" : "!function /t/utils.f",
                           metric.at("kwargs")));
  }
  const TaskDefinition task = TaskWith(std::move(metrics), entry.at("several"));
  PreparedDocument document;
  document.target = entry.at("gold");
  Json detail;
  const auto results = MakeProcessResults(task, nullptr, nullptr);
  results->Check(document);
  return results->Run(document, {entry.at("result")}, &detail);
}

TEST(GeneratedMetrics, GiveTheHarnesssValuesOrRefuseTheAnswer) {
  const std::string path = EVALD_SOURCE_DIR "/tests/golden/metrics/generated.json";
  const Json golden = ParseJson(ReadFile(path), path);
  std::map<std::string, int> refused;
  int equal = 0, both_refuse = 0;
  for (const Json& entry : golden.at("cases")) {
    if (entry.at("metrics")[0].contains("function")) continue;  // tests/task_code/test_runtime.py
    const bool gives = entry.contains("values");
    try {
      const Json values = RunCase(entry);
      EXPECT_TRUE(gives) << "the harness raises " << entry["error"] << ": " << ToLine(entry);
      EXPECT_EQ(values, gives ? entry["values"] : values) << ToLine(entry);
      ++equal;
    } catch (const Error& error) {
      if (gives) ++refused[error.message()];
      both_refuse += gives ? 0 : 1;
    }
  }
  EXPECT_GT(equal, 600);
  EXPECT_GT(both_refuse, 50);
  for (const auto& [message, count] : refused) {
    EXPECT_THAT(message, AnyOf(HasSubstr("exact_match"), HasSubstr("the filters leave")))
        << count << " times";
  }
}

}  // namespace
}  // namespace evald
