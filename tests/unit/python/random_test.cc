// PythonRandom against draws of CPython 3.11 (tests/oracle/python_random.py).
#include "python/random.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include "base/file.h"
#include "base/jsonl.h"
#include "evald/error.h"

namespace evald {
namespace {

double FromHex(const std::string& text) { return std::strtod(text.c_str(), nullptr); }

Json Golden() {
  const std::string path = EVALD_SOURCE_DIR "/tests/golden/metrics/python_random.json";
  return ParseJson(ReadFile(path), path);
}

void CheckDraws(const Json& want) {
  SCOPED_TRACE(want["seed"].dump());
  PythonRandom random(want["seed"].get<int64_t>());
  for (const Json& x : want["random"]) EXPECT_EQ(random.Random(), FromHex(x));
  for (const Json& x : want["bits"]) {
    EXPECT_EQ(std::to_string(random.GetRandBits(x[0].get<int>())), x[1].get<std::string>());
  }
  for (const Json& x : want["below"]) {
    EXPECT_EQ(random.RandBelow(x[0].get<uint64_t>()), x[1].get<uint64_t>());
  }
  for (const Json& x : want["randrange"]) {
    EXPECT_EQ(random.RandRange(x[0].get<int64_t>(), x[1].get<int64_t>()), x[2].get<int64_t>());
  }
  for (const Json& x : want["sample"]) {
    EXPECT_EQ(random.SampleIndices(x[0].get<size_t>(), x[1].get<size_t>()),
              x[2].get<std::vector<size_t>>());
  }
  std::vector<int> items(want["shuffle"].size());
  std::iota(items.begin(), items.end(), 0);
  random.Shuffle(&items);
  EXPECT_EQ(items, want["shuffle"].get<std::vector<int>>());
  EXPECT_EQ(random.ChoiceIndices(37, 20), want["choices"].get<std::vector<size_t>>());
  for (int i = 0; i < 2000; ++i) random.Random();
  EXPECT_EQ(random.Random(), FromHex(want["late"]));
}

TEST(PythonRandom, DrawsWhatCPythonDraws) {
  const Json golden = Golden();
  ASSERT_EQ(golden.size(), 9U);
  for (const Json& draws : golden) CheckDraws(draws);
}

TEST(PythonRandom, RefusesEmptyRanges) {
  PythonRandom random(1);
  EXPECT_THROW(random.RandBelow(0), Error);
  EXPECT_THROW(random.RandRange(3, 3), Error);
  EXPECT_THROW(random.SampleIndices(2, 3), Error);
  EXPECT_THROW(random.ChoiceIndices(0, 1), Error);
}

}  // namespace
}  // namespace evald
