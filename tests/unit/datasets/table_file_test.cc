// Files with tables and copies of hub datasets, against rows of the package `datasets`
// (tests/oracle/table_golden.py). Reading tables takes a Python that has pyarrow.
#include "datasets/table_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/jsonl.h"
#include "datasets/hub_folder.h"
#include "datasets/sources.h"
#include "python/value.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const fs::path kTables = fs::path(EVALD_SOURCE_DIR) / "tests/golden/datasets/tables";

// A Python with pyarrow: that of scripts/install-packages --with-schema-tester.
std::string ArrowPython() {
  const char* given = std::getenv("EVALD_ARROW_PYTHON");
  const std::string python =
      given != nullptr ? given
                       : (fs::path(EVALD_SOURCE_DIR) / "build/schemathesis/bin/python").string();
  return std::system((python + " -c 'import pyarrow' 2>/dev/null").c_str()) == 0 ? python : "";
}

class TableFile : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.python = ArrowPython();
    if (options_.python.empty()) GTEST_SKIP() << "no Python with pyarrow: EVALD_ARROW_PYTHON";
  }

  Documents Read(const SplitFiles& files) {
    return ReadSplit(files, {}, nullptr,
                     [&] { return std::make_unique<TableReader>(options_, nullptr); });
  }
  SplitFiles Files(const std::vector<fs::path>& paths) {
    SplitFiles files;
    for (const fs::path& path : paths)
      files.files.push_back({path, ReadRoots().OpenFile(path), ""});
    return files;
  }
  static SplitFiles Found(const std::string& dataset_path, const std::string& dataset_name,
                          const std::string& split, const fs::path& data_dir = "") {
    TaskConfig config;
    config.name = "t";
    config.dataset_path = dataset_path;
    config.dataset_name = dataset_name;
    return FindSplit(config, split, data_dir);
  }
  static void ExpectRows(const Documents& found, const std::string& name) {
    const Json expected = ParseJson(ReadFile(kTables / "rows.json"), "rows.json")[name];
    ASSERT_EQ(found.rows.size(), expected.size()) << name;
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(PythonRepr(found.rows[i]), expected[i].get<std::string>()) << name << " " << i;
  }
  std::string Refusal(const std::string& name, const std::string& bytes) {
    scratch_.Write(name, bytes);
    return RefusalOf([&] { Read(Files({scratch_ / name})); });
  }

  TaskCodeOptions options_;
  TemporaryFolder scratch_;
};

TEST_F(TableFile, RowsAreThoseOfTheDatasetsPackage) {
  ExpectRows(Read(Files({kTables / "first.parquet", kTables / "second.parquet"})), "both");
  ExpectRows(Read(Files({kTables / "dictionary.parquet"})), "dictionary.parquet");
  ExpectRows(Read(Files({kTables / "file.arrow"})), "file.arrow");
  const std::string saved = (kTables / "saved").string();
  ExpectRows(Read(Found(saved, "", "test")), "saved test");
  ExpectRows(Read(Found(saved, "", "auxiliary_train")), "saved auxiliary_train");
  ExpectRows(Read(Found((kTables / "hub").string(), "main", "test")), "hub main");
}

TEST_F(TableFile, ACopyOfAHubDatasetIsFoundBelowTheDataFolder) {
  const auto at = [&](const std::string& place) {
    const TemporaryFolder data;
    fs::create_directories((data / place).parent_path());
    fs::copy(kTables / "hub", data / place, fs::copy_options::recursive);
    if (place.find("snapshots") != std::string::npos)
      data.Write("datasets--owner--name/refs/main", "abc123");
    return Read(Found("owner/name", "main", "test", data.path())).rows.size();
  };
  EXPECT_EQ(at("owner/name"), 12u);
  EXPECT_EQ(at("name"), 12u);
  EXPECT_EQ(at("datasets--owner--name/snapshots/abc123"), 12u);
  EXPECT_THAT(RefusalOf([] { Found((kTables / "hub").string(), "mian", "test"); }),
              HasSubstr("the dataset_name 'mian', expected one of main; did you mean 'main'?"));
  EXPECT_THAT(RefusalOf([] { Found((kTables / "hub").string(), "main", "train"); }),
              HasSubstr("has no split 'train', its files' names make test"));
  EXPECT_THAT(RefusalOf([&] { Found("owner/name", "", "test", scratch_.path()); }),
              HasSubstr((scratch_ / "datasets--owner--name").string()));
}

TEST_F(TableFile, FilesThatAreNoneAreRefused) {
  const std::string whole = ReadFile(kTables / "first.parquet");
  for (const std::string& bytes : {std::string(), std::string("PAR1"), std::string("ARROW1"),
                                   std::string(5000, 'x'), whole.substr(0, whole.size() / 2)}) {
    EXPECT_THAT(Refusal("test.parquet", bytes),
                HasSubstr("test.parquet: cannot be read as a table"));
  }
  scratch_.Write("other.jsonl", "{\"q\":1}\n");
  EXPECT_THAT(
      RefusalOf([&] { Read(Files({kTables / "first.parquet", scratch_ / "other.jsonl"})); }),
      HasSubstr("other.jsonl: cannot be read as a table"));
  options_.python = "/usr/bin/python3";
  if (std::system("/usr/bin/python3 -c 'import pyarrow' 2>/dev/null") != 0) {
    EXPECT_THAT(Refusal("test.parquet", whole), HasSubstr("takes the Python package pyarrow"));
  }
}

TEST(HubFolder, PatternsMatchAsInFileSystems) {
  for (const auto& [pattern, path] : std::vector<std::pair<const char*, const char*>>{
           {"a.jsonl", "a.jsonl"},
           {"main/test-*", "main/test-00000-of-00001.parquet"},
           {"*/test*.parquet", "main/test.parquet"},
           {"**/b*", "b1"},
           {"**/b*", "x/y/b"},
           {"x/**", "x/y/z"},
           {"x/**/z", "x/z"},
           {"?[ab]", "1a"},
           {"[]]", "]"},
           {"a[", "a["},
           {"**", "a/b"},
           {"[!d]*", "test"},
           {"[a-c]1", "b1"},
           {"[!-z]*", "dev"},
           {"[^d]", "^"}}) {
    EXPECT_TRUE(MatchesPattern(pattern, path)) << pattern << " " << path;
  }
  for (const auto& [pattern, path] :
       std::vector<std::pair<const char*, const char*>>{{"a.jsonl", "a.jsonl2"},
                                                        {"main/test-*", "main/test-x/y"},
                                                        {"*", "a/b"},
                                                        {"", "a"},
                                                        {"?", "/"},
                                                        {"**/b", "ab"},
                                                        {"[ab]", "c"},
                                                        {"x/**/z", "xz"},
                                                        {"[!d]*", "dev"},
                                                        {"[a-c]1", "d1"},
                                                        {"[d-a]*", "dev"}}) {
    EXPECT_FALSE(MatchesPattern(pattern, path)) << pattern << " " << path;
  }
}

}  // namespace
}  // namespace evald
