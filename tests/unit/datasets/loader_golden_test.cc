// JSON and CSV files, against their reading by load_dataset of the `datasets` library
// (tests/oracle/loader_golden.py).
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "base/jsonl.h"
#include "datasets/sources.h"
#include "evald/error.h"
#include "python/value.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

std::string TextOf(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  for (const Json& piece : content) {
    const auto pattern = piece[1].get<std::string>();
    const size_t at = pattern.find("%d");
    for (int i = 0; i < piece[0].get<int>(); ++i) {
      text += at == std::string::npos
                  ? pattern
                  : pattern.substr(0, at) + std::to_string(i) + pattern.substr(at + 2);
    }
  }
  return text;
}

Documents ReadCase(const Json& given) {
  const TemporaryFolder scratch;
  TaskConfig config;
  config.name = "t";
  config.dataset_path = given["kind"].get<std::string>();
  config.folder = scratch.path().string();
  config.data_files = Json::object();
  for (const auto& item : given["files"].items()) {
    Json names = Json::array();
    for (const Json& content : item.value()) {
      names.push_back(item.key() + std::to_string(names.size()) + "." + config.dataset_path);
      scratch.Write(names.back().get<std::string>(), TextOf(content));
    }
    config.data_files[item.key()] = std::move(names);
  }
  const SplitFiles files = FindSplit(config, given["split"].get<std::string>(), "");
  return ReadSplit(files, {}, nullptr);
}

// Files that the harness reads and evald refuses. docs/tasks.md lists them.
bool MayRefuseRows(const std::string& name) {
  static const std::set<std::string> kNames = {
      "splits, mixed where text is",
      "files, mixed where text is",
      "null in a list",
      "csv files, whole fractions",
      "csv files, gaps",
      "csv, beyond 63 bits",
      "csv, beyond 63 bits with a gap",
  };
  return kNames.count(name) != 0;
}

void Compare(const Json& given, bool refusals_count) {
  const auto name = given["name"].get<std::string>();
  Documents documents;
  try {
    documents = ReadCase(given);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput) << name << ": " << error.what();
    const bool expected = given.contains("error") || MayRefuseRows(name);
    if (refusals_count) {
      EXPECT_TRUE(expected) << name << ": " << error.what();
    }
    if (!refusals_count && !expected) std::printf("refused: %s: %s\n", name.c_str(), error.what());
    return;
  }
  ASSERT_FALSE(given.contains("error")) << name << ": the harness refuses this: " << given["error"];
  EXPECT_FALSE(MayRefuseRows(name)) << name;
  const size_t count = documents.rows.size();
  ASSERT_EQ(count, given["count"].get<size_t>()) << name;
  for (size_t i = 0; i < given["rows"].size(); ++i) {
    const size_t at = count <= 100 || i < 2 ? i : count - 4 + i;
    EXPECT_EQ(PythonRepr(documents.rows[at]), given["rows"][i].get<std::string>())
        << name << ", row " << at;
  }
}

TEST(LoaderGolden, RowsAreThoseOfLoadDataset) {
  size_t cases = 0;
  ForEachJsonLine(fs::path(EVALD_SOURCE_DIR) / "tests/golden/datasets/loader.jsonl",
                  [&](size_t, Json&& given) {
                    ++cases;
                    Compare(given, true);
                  });
  EXPECT_GE(cases, 150u);
}

// A wider comparison by hand. EVALD_LOADER_CASES names a file that the script wrote with --random.
TEST(LoaderGolden, CasesOfAFile) {
  const char* file = std::getenv("EVALD_LOADER_CASES");
  if (file == nullptr) GTEST_SKIP() << "EVALD_LOADER_CASES is not set";
  ForEachJsonLine(file, [&](size_t, Json&& given) { Compare(given, false); });
}

}  // namespace
}  // namespace evald
