// Requests against those of lm-evaluation-harness 0.4.13 (tests/oracle/requests_compare.py).
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "base/file.h"
#include "base/jsonl.h"
#include "datasets/task_set.h"
#include "prepared/prepared_task.h"
#include "tests/oracle/request_digest.h"
#include "tests/unit/datasets/scratch.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

const fs::path kGolden = EVALD_SOURCE_DIR "/tests/golden/datasets";

fs::path DataDir() {
  const char* given = std::getenv("EVALD_DATA_DIR");
  return given != nullptr ? fs::path(given) : fs::path(EVALD_SOURCE_DIR) / "../shared/data";
}

Json AsJson(const PreparedDocument& document, const Request& request, const std::string& task) {
  return {{"task", task},
          {"doc_id", request.doc_id},
          {"idx", request.idx},
          {"kind", ToString(request.kind)},
          {"context", request.context},
          {"continuation", request.continuation},
          {"sampling", oracle::SamplingText(request)},
          {"target", document.target},
          {"choices", document.choices}};
}

TEST(Requests, MadeUpTasksAreTheHarnesss) {
  const Scratch scratch;
  PrepareOptions options;
  options.cache_dir = scratch.path();
  const TaskRegistry registry({kGolden / "made_up"});
  std::map<std::string, std::vector<Json>> expected;
  ForEachJsonLine(kGolden / "made_up_requests.jsonl", [&](size_t, Json&& row) {
    expected[row["task"].get<std::string>()].push_back(std::move(row));
  });
  EXPECT_GE(expected.size(), 10u);
  for (const auto& [name, rows] : expected) {
    const ResolvedTasks resolved = registry.Resolve({TaskRequest{name}});
    const PreparedTask task(PrepareTask(resolved.leaves.at(0), options));
    size_t at = 0;
    for (int64_t i = 0; i < task.document_count(); ++i) {
      for (const Request& request : task.Requests(i, i + 1)) {
        ASSERT_LT(at, rows.size()) << name;
        EXPECT_EQ(AsJson(task.Document(i), request, name), rows[at]) << name << " request " << at;
        ++at;
      }
    }
    EXPECT_EQ(at, rows.size()) << name;
  }
}

TEST(Requests, BuiltInTasksAreTheHarnesss) {
  if (!fs::exists(DataDir() / "gsm8k")) {
    GTEST_SKIP() << "no benchmark data at " << DataDir() << " (set EVALD_DATA_DIR)";
  }
  const Scratch scratch;
  PrepareOptions options;
  options.cache_dir = scratch.path();
  options.data_dir = DataDir();
  const TaskRegistry registry({});
  const Json golden = ParseJson(ReadFile(kGolden / "builtin_requests.json"), "golden");
  EXPECT_GE(golden.size(), 60u);
  for (const auto& item : golden.items()) {
    const ResolvedTasks resolved = registry.Resolve({TaskRequest{item.key()}});
    const PreparedTask task(PrepareTask(resolved.leaves.at(0), options));
    EXPECT_EQ(oracle::Digests(task), item.value()) << item.key();
  }
}

}  // namespace
}  // namespace evald
