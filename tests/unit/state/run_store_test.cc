#include "orchestrator/state/run_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "evald/error.h"
#include "orchestrator/state/database_thread.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

class RunStoreTest : public testing::Test {
 protected:
  RunStoreTest() {
    std::string name = (fs::temp_directory_path() / "evald-state-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~RunStoreTest() override { fs::remove_all(folder_); }

  static CommittedFile File(const std::string& path, int64_t first, int64_t end) {
    CommittedFile file;
    file.task = "t";
    file.trial = 1;
    file.attempt = 1;
    file.first = first;
    file.end = end;
    file.path = path;
    file.hash = "h";
    return file;
  }

  fs::path folder_;
};

TEST_F(RunStoreTest, TheFirstRowOfADocumentWins) {
  RunStore store(folder_);
  store.OpenRun("r", "/out");
  EXPECT_EQ(store.Commit("r", FileKind::kGenerations, File("a", 0, 3), {0, 1, 2}), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(store.Commit("r", FileKind::kGenerations, File("b", 1, 5), {1, 2, 3, 4}), (std::vector<int64_t>{3, 4}));
  const RunRecord record = store.Load("r");
  EXPECT_EQ(record.generations[record.generated.at("t").at(2)].path, "a");
  EXPECT_EQ(record.generations[record.generated.at("t").at(3)].path, "b");
}

TEST_F(RunStoreTest, WhatIsCommittedIsThereAfterReopening) {
  {
    RunStore store(folder_);
    store.OpenRun("r", "/out");
    store.Commit("r", FileKind::kScores, File("s", 0, 1), {0});
    store.RecordLease("r", 4, 2, "w0");
  }
  RunStore store(folder_);
  const RunRecord record = store.Load("r");
  EXPECT_EQ(record.scored.at("t").size(), 1u);
  EXPECT_EQ(record.attempts.at(4), 2);
  EXPECT_TRUE(store.Load("another").generated.empty());
}

TEST_F(RunStoreTest, LostGenerationsTakeTheirScoresWithThem) {
  RunStore store(folder_);
  store.OpenRun("r", "/out");
  store.Commit("r", FileKind::kGenerations, File("a", 0, 2), {0, 1});
  store.Commit("r", FileKind::kGenerations, File("b", 2, 3), {2});
  store.Commit("r", FileKind::kScores, File("s", 0, 3), {0, 1, 2});
  store.Forget("r", FileKind::kGenerations, "a");
  RunRecord record = store.Load("r");
  EXPECT_EQ(record.generated.at("t").size(), 1u);
  EXPECT_EQ(record.scored.at("t").size(), 1u);
  EXPECT_EQ(record.scored.at("t").count(2), 1u);
}

TEST_F(RunStoreTest, ANewerSchemaIsRefused) {
  { RunStore store(folder_); }
  { Database(folder_ / "state.db").Execute("PRAGMA user_version = 999"); }
  try {
    RunStore store(folder_);
    FAIL() << "a newer schema was opened";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("999"), std::string::npos);
  }
}

TEST_F(RunStoreTest, AFileThatIsNoDatabaseIsNamed) {
  std::ofstream(folder_ / "state.db") << std::string(4096, 'x');
  try {
    RunStore store(folder_);
    FAIL() << "garbage was opened";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("state.db"), std::string::npos) << e.what();
  }
}

TEST_F(RunStoreTest, AnExceptionRollsATransactionBack) {
  RunStore store(folder_);
  store.OpenRun("r", "/out");
  EXPECT_THROW(store.database().Transaction([&] {
                 store.Commit("r", FileKind::kGenerations, File("a", 0, 1), {0});
                 throw Error(ErrorKind::kInternal, "no");
               }),
               Error);
  EXPECT_TRUE(store.Load("r").generated.empty());
}

TEST_F(RunStoreTest, TheThreadReportsOnTheLoopAfterCommitting) {
  RunStore store(folder_);
  store.OpenRun("r", "/out");
  Loop loop;
  int reported = 0;
  {
    DatabaseThread thread(&store, &loop, [](std::exception_ptr) { FAIL(); });
    for (int64_t i = 0; i < 100; ++i) {
      thread.Post([i](RunStore& s) { s.Commit("r", FileKind::kGenerations, File(std::to_string(i), i, i + 1), {i}); },
                  [&] {
                    if (++reported == 100) loop.Stop();
                  });
    }
    loop.Run();
  }
  EXPECT_EQ(store.Load("r").generated.at("t").size(), 100u);
}

TEST_F(RunStoreTest, AFailureIsReportedOnceAndNothingMoreIsWritten) {
  RunStore store(folder_);
  store.OpenRun("r", "/out");
  Loop loop;
  int failures = 0;
  {
    DatabaseThread thread(&store, &loop, [&](std::exception_ptr) {
      ++failures;
      loop.Stop();
    });
    thread.Post([](RunStore&) { throw Error(ErrorKind::kInfrastructure, "disk full"); });
    loop.Run();
    thread.Post([](RunStore& s) { s.Commit("r", FileKind::kGenerations, File("a", 0, 1), {0}); });
  }
  EXPECT_EQ(failures, 1);
  EXPECT_TRUE(store.Load("r").generated.empty());
}

}  // namespace
}  // namespace evald
