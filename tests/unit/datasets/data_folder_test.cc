// Local folders, against their reading by load_dataset of the `datasets` library
// (tests/oracle/folder_golden.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "base/jsonl.h"
#include "datasets/sources.h"
#include "evald/error.h"
#include "python/value.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TaskConfig ConfigOf(const std::string& dataset_path, const fs::path& folder,
                    const Json& kwargs = Json(), const std::string& dataset_name = "") {
  YamlMapping yaml;
  yaml.value = {{"task", "t"},
                {"dataset_path", dataset_path},
                {"test_split", "test"},
                {"doc_to_text", "x"},
                {"doc_to_target", "y"}};
  if (!kwargs.is_null()) yaml.value["dataset_kwargs"] = kwargs;
  if (!dataset_name.empty()) yaml.value["dataset_name"] = dataset_name;
  return ParseTaskConfig(yaml, (folder / "t.yaml").string());
}

Documents Read(const TaskConfig& config, const std::string& split) {
  return ReadSplit(FindSplit(config, split, ""), {}, nullptr);
}

// Folders that the harness reads and evald refuses. docs/tasks.md lists them.
bool MayRefuse(const std::string& name) {
  static const std::set<std::string> kNames = {"two formats in a split"};
  return kNames.contains(name);
}

void Compare(const Json& given) {
  const auto name = given["name"].get<std::string>();
  const TemporaryFolder scratch;
  const fs::path folder = scratch / "set";
  for (const auto& file : given["files"].items())
    scratch.Write("set/" + file.key(), file.value().get<std::string>());
  const auto config = [&] {
    return ConfigOf(given.value("path", folder.string()), folder, given.value("kwargs", Json()),
                    given.value("dataset_name", ""));
  };
  if (given.contains("error") || MayRefuse(name)) {
    EXPECT_THROW(Read(config(), "test"), Error) << name;
    return;
  }
  for (const auto& split : given["splits"].items()) {
    Documents documents;
    try {
      documents = Read(config(), split.key());
    } catch (const Error& error) {
      ADD_FAILURE() << name << ": " << error.what();
      continue;
    }
    Json rows = Json::array();
    for (const Json& row : documents.rows) rows.push_back(PythonRepr(row));
    EXPECT_EQ(ToLine(rows), ToLine(split.value())) << name << ", split " << split.key();
  }
  for (const char* split : {"train", "validation", "test"}) {
    if (given["splits"].contains(split)) continue;
    EXPECT_THROW(Read(config(), split), Error) << name << ", split " << split;
  }
}

TEST(DataFolder, RowsAreThoseOfLoadDataset) {
  size_t cases = 0;
  ForEachJsonLine(fs::path(EVALD_SOURCE_DIR) / "tests/golden/datasets/folders.jsonl",
                  [&](size_t, Json&& given) {
                    ++cases;
                    Compare(given);
                  });
  EXPECT_GE(cases, 48u);
}

// A wider comparison by hand. EVALD_FOLDER_CASES names a file that the script wrote with --random.
TEST(DataFolder, CasesOfAFile) {
  const char* file = std::getenv("EVALD_FOLDER_CASES");
  if (file == nullptr) GTEST_SKIP() << "EVALD_FOLDER_CASES is not set";
  ForEachJsonLine(file, [&](size_t, Json&& given) { Compare(given); });
}

// A folder of the same name below data_dir is a different one.
TEST(DataFolder, OnlyTheNamedFolderIsRead) {
  const TemporaryFolder scratch;
  scratch.Write("tasks/data/test.jsonl", "{\"q\":\"right\"}\n");
  scratch.Write("benchmarks/data/test.jsonl", "{\"q\":\"wrong\"}\n");
  const std::string absolute = (scratch / "tasks/data").string();
  for (const std::string& path :
       {std::string("./data"), std::string("../tasks/data"), std::string("a/../data"), absolute}) {
    const SplitFiles files =
        FindSplit(ConfigOf(path, scratch / "tasks"), "test", scratch / "benchmarks");
    EXPECT_EQ(ReadSplit(files, {}, nullptr).rows[0]["q"], "right") << path;
  }
  for (const char* path : {"./absent", "/absent/data", "~/data", "x/y/data"}) {
    EXPECT_THAT(CaughtText([&] {
                  FindSplit(ConfigOf(path, scratch / "tasks"), "test", scratch / "benchmarks");
                }),
                HasSubstr("of its dataset is not there"))
        << path;
  }
  EXPECT_THAT(CaughtText([&] { FindSplit(ConfigOf("data", scratch / "tasks"), "test", ""); }),
              HasSubstr("write dataset_path: ./data"));
}

TEST(DataFolder, StaysBelowTheRoots) {
  const TemporaryFolder scratch;
  scratch.Write("in/data/test.jsonl", "{\"q\":\"in\"}\n");
  scratch.Write("out/data/test.jsonl", "{\"q\":\"out\"}\n");
  fs::create_directories(scratch / "in/link");
  fs::create_symlink(scratch / "out/data/test.jsonl", scratch / "in/link/test.jsonl");
  const ReadRoots roots({scratch / "in"});
  const auto find = [&](const std::string& path) {
    return FindSplit(ConfigOf(path, scratch / "in"), "test", "", roots);
  };
  EXPECT_EQ(find("./data").files.size(), 1u);
  EXPECT_THAT(CaughtText([&] { find("../out/data"); }), HasSubstr("of its dataset is not there"));
  EXPECT_THAT(CaughtText([&] { find((scratch / "out/data").string()); }),
              HasSubstr("of its dataset is not there"));
  EXPECT_THAT(CaughtText([&] { find("./link"); }),
              HasSubstr("a link on its way leads nowhere, or outside"));
}

TEST(DataFolder, LinksMayLeadInCircles) {
  const TemporaryFolder scratch;
  scratch.Write("data/test.jsonl", "{\"q\":1}\n");
  for (const char* name : {"a", "b"}) fs::create_directory_symlink(".", scratch / "data" / name);
  EXPECT_THAT(CaughtText([&] { FindSplit(ConfigOf("./data", scratch.path()), "test", ""); }),
              ::testing::AnyOf(HasSubstr("nested more than"), HasSubstr("folders")));
}

TEST(DataFolder, KeysThatAreNotServedHaveARemedy) {
  EXPECT_THAT(
      CaughtText([] { ConfigOf("json", "/x", {{"data_files", "a.json"}, {"field", "data"}}); }),
      HasSubstr("write the rows of that member"));
  EXPECT_THAT(CaughtText([] { ConfigOf("org/name", "/x", {{"data_dir", "a"}}); }),
              HasSubstr("or a local folder"));
  EXPECT_THAT(CaughtText([] { ConfigOf("text", "/x"); }),
              HasSubstr("needs dataset_kwargs.data_files or data_dir"));
}

}  // namespace
}  // namespace evald
