#include "orchestrator/report/timeline.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "base/jsonl.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

TEST(Timeline, ShareCountsOverlapsOnceAndOnlyTheNamedSpans) {
  Timeline timeline(1000);
  timeline.AddRow("w0", "worker", true);
  timeline.Add("w0", {"generate", 1000, 1400});
  timeline.Add("w0", {"generate", 1300, 1500});
  timeline.Add("w0", {"pull", 1500, 1900});
  timeline.Add("m0", {"score", 1000, 2000});
  const auto shares = timeline.Share("generate", 2000);
  ASSERT_EQ(shares.size(), 1u) << "only device rows have a share";
  EXPECT_DOUBLE_EQ(shares.at("w0"), 0.5);
}

TEST(Timeline, OfARunThatGoesOnHasTheNewestSpansAndNoIdleTimeAtItsEnd) {
  Timeline timeline(0);
  timeline.AddRow("w0", "worker w0", true);
  timeline.AddRow("w1", "worker w1", true);
  for (int64_t i = 0; i < 10; ++i)
    timeline.Add("w0", {"generate", i * 10'000, i * 10'000 + 5'000, {{"trial", i}}});
  const Json trace = timeline.Live(200'000, 4);
  std::vector<std::tuple<std::string, int64_t, int64_t>> spans;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    EXPECT_TRUE(event["args"].empty());
    spans.emplace_back(event["name"].get<std::string>(), event["ts"].get<int64_t>(),
                       event["dur"].get<int64_t>());
  }
  EXPECT_EQ(spans, (decltype(spans){{"generate", 80'000, 5'000},
                                    {"idle", 85'000, 5'000},
                                    {"generate", 90'000, 5'000}}));
  EXPECT_EQ(trace["otherData"]["live until"], "200000");
}

// Processes report their spans themselves.
TEST(Timeline, SpansBeyondTheirBoundAreDroppedAndCounted) {
  const TemporaryFolder folder;
  const auto path = folder / "timeline.json";
  Timeline timeline(0);
  const Json large = {{"x", std::string(1'000'000, 'y')}};
  for (int i = 0; i < 20; ++i) timeline.Add("liar", {"idle", 1, 2, large});
  timeline.Add("w0", {"generate", 1, 2});
  timeline.Write(path, 10);
  const Json trace = ParseJson(ReadFile(path), "trace");
  const auto bytes = std::filesystem::file_size(path);
  EXPECT_LT(bytes, Timeline::kRowBytesMax + 100'000);
  EXPECT_EQ(trace["otherData"], (Json{{"dropped spans of liar", "12"}}));
  EXPECT_NE(trace.dump().find("generate"), std::string::npos) << "others' spans are there";
}

TEST(Timeline, WritesEveryRowAndTheIdleTimeOfDevices) {
  const TemporaryFolder folder;
  const auto path = folder / "timeline.json";
  Timeline timeline(0);
  timeline.AddRow("w0", "worker w0", true);
  timeline.Add("w0", {"generate", 5000, 9000, {{"trial", 3}}});
  timeline.Write(path, 20000);
  const Json trace = ParseJson(ReadFile(path), "trace");
  std::vector<std::tuple<std::string, int64_t, int64_t>> spans;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X")
      spans.emplace_back(event["name"].get<std::string>(), event["ts"].get<int64_t>(),
                         event["dur"].get<int64_t>());
  }
  EXPECT_EQ(spans,
            (decltype(spans){{"idle", 0, 5000}, {"generate", 5000, 4000}, {"idle", 9000, 11000}}));
}

}  // namespace
}  // namespace evald
