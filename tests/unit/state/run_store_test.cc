#include "orchestrator/state/run_store.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>

#include "base/file.h"
#include "evald/error.h"
#include "orchestrator/state/database_thread.h"
#include "orchestrator/state/service_store.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

class RunStoreTest : public testing::Test {
 protected:
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

  TemporaryFolder folder_;
};

/// Lets no file of this process grow beyond `bytes`, until the end of this object. A write beyond
/// fails, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now = {bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

// Its first failure is the one that is told: without the run's row, each later row would fail for
// another reason.
TEST_F(RunStoreTest, ARunThatCannotBeWrittenIsNotOpen) {
  RunStore store(folder_.path());
  std::string what;
  {
    const FileSizeLimit full(1);
    what = CaughtText([&] { store.OpenRun("r", "/out"); }, ErrorKind::kInfrastructure);
  }
  EXPECT_NE(what.find("state.db: "), std::string::npos) << what;
  EXPECT_EQ(what.find("FOREIGN KEY"), std::string::npos) << what;
  EXPECT_GT(store.OpenRun("r", "/out"), 0) << "there is space again";
  store.RecordLease("r", 0, 1, "w");
}

// The tables of schema version 1, as in the first release, with one run.
constexpr const char* kVersion1 = R"sql(
CREATE TABLE runs (run TEXT PRIMARY KEY, output TEXT NOT NULL, created REAL NOT NULL, state TEXT NOT NULL)
  WITHOUT ROWID;
CREATE TABLE leases (run TEXT NOT NULL REFERENCES runs(run), trial INTEGER NOT NULL, attempt INTEGER NOT NULL,
  worker TEXT NOT NULL, granted REAL NOT NULL, PRIMARY KEY (run, trial, attempt)) WITHOUT ROWID;
CREATE TABLE files (file INTEGER PRIMARY KEY, run TEXT NOT NULL REFERENCES runs(run), kind INTEGER NOT NULL,
  task TEXT NOT NULL, trial INTEGER NOT NULL, attempt INTEGER NOT NULL, first INTEGER NOT NULL, end INTEGER NOT NULL,
  path TEXT NOT NULL, hash TEXT NOT NULL, bytes INTEGER NOT NULL, requests INTEGER NOT NULL,
  truncated INTEGER NOT NULL, tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL, committed REAL NOT NULL);
CREATE INDEX files_by_run ON files (run);
CREATE TABLE documents (run TEXT NOT NULL, kind INTEGER NOT NULL, task TEXT NOT NULL, document INTEGER NOT NULL,
  file INTEGER NOT NULL REFERENCES files(file), PRIMARY KEY (run, kind, task, document)) WITHOUT ROWID;
INSERT INTO runs VALUES ('old', '/out', 1.0, 'running');
INSERT INTO leases VALUES ('old', 0, 2, 'w0', 1.0);
INSERT INTO files VALUES (1, 'old', 0, 't', 0, 2, 0, 2, 'f', 'h', 10, 2, 0, 4, 4, 1.0);
INSERT INTO documents VALUES ('old', 0, 't', 0, 1), ('old', 0, 't', 1, 1);
PRAGMA user_version = 1;
)sql";

TEST_F(RunStoreTest, AnOlderSchemaIsMigrated) {
  Database(folder_ / "state.db").Execute(kVersion1);
  RunStore store(folder_.path());
  const RunRecord record = store.Load("old");
  ASSERT_EQ(record.generations.size(), 1u);
  EXPECT_EQ(record.generated.at("t").size(), 2u);
  EXPECT_EQ(record.attempts.at(0), 2);
  const int64_t number = store.OpenRun("old", "/out");
  EXPECT_GT(number, 0);
  EXPECT_GT(store.OpenRun("new", "/out"), number);
  store.RecordLease("new", 0, 1, "w0");  // references still lead to the table of runs
  EXPECT_THROW(store.RecordLease("nobody", 0, 1, "w0"), Error);
}

TEST_F(RunStoreTest, ListsReadNoSubmissions) {
  RunStore store(folder_.path());
  store.OpenRun("foreground", "/out");
  RunRow row;
  row.run = "r";
  row.user = "ada";
  row.submission = R"({"yaml": "tasks: []"})";
  row.resource = R"({"id": "r"})";
  service_store::AddRun(store.database(), row);
  const std::vector<RunRow> rows = service_store::ListRuns(store.database(), {.user = "ada"});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].resource, row.resource);
  EXPECT_EQ(rows[0].submission, "");
  EXPECT_EQ(service_store::ListRuns(store.database(), {}).size(), 1u);
  EXPECT_EQ(service_store::ShowRun(store.database(), "r")->submission, "");
  EXPECT_EQ(service_store::FindRun(store.database(), "r")->submission, row.submission);
  EXPECT_FALSE(service_store::ShowRun(store.database(), "foreground"));
}

TEST_F(RunStoreTest, ListsOfAUserGoByAnIndex) {
  RunStore store(folder_.path());
  for (const char* column : {"user", "name", "checkpoint", "state"}) {
    Statement plan = store.database().Prepare(
        "EXPLAIN QUERY PLAN SELECT resource FROM runs WHERE resource <> '' AND number < ? AND " +
        std::string(column) + " = ? ORDER BY number DESC LIMIT 50");
    ASSERT_TRUE(plan.Step());
    EXPECT_NE(plan.Text(3).find("INDEX runs_by_"), std::string::npos) << plan.Text(3);
    EXPECT_FALSE(plan.Step()) << "they are sorted";
  }
}

TEST_F(RunStoreTest, WatchesAreKept) {
  Database(folder_ / "state.db").Execute(kVersion1);
  {
    RunStore store(folder_.path());
    service_store::AddWatch(store.database(), {"w2", 2.0, "{}"});
    service_store::AddWatch(store.database(), {"w1", 1.0, "{\"a\":1}"});
    service_store::AddWatch(store.database(), {"w1", 3.0, "another"});
  }
  RunStore store(folder_.path());
  const std::vector<WatchRow> rows = service_store::ListWatches(store.database());
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].watch, "w1");
  EXPECT_EQ(rows[0].definition, "{\"a\":1}");
  EXPECT_EQ(rows[1].created, 2.0);
  service_store::RemoveWatch(store.database(), "w1");
  EXPECT_EQ(service_store::ListWatches(store.database()).size(), 1u);
}

TEST_F(RunStoreTest, TheFirstRowOfADocumentWins) {
  RunStore store(folder_.path());
  store.OpenRun("r", "/out");
  EXPECT_EQ(store.Commit("r", FileKind::kGenerations, File("a", 0, 3), {0, 1, 2}),
            (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(store.Commit("r", FileKind::kGenerations, File("b", 1, 5), {1, 2, 3, 4}),
            (std::vector<int64_t>{3, 4}));
  const RunRecord record = store.Load("r");
  EXPECT_EQ(record.generations[record.generated.at("t").at(2)].path, "a");
  EXPECT_EQ(record.generations[record.generated.at("t").at(3)].path, "b");
}

TEST_F(RunStoreTest, WhatIsCommittedIsThereAfterReopening) {
  {
    RunStore store(folder_.path());
    store.OpenRun("r", "/out");
    store.Commit("r", FileKind::kScores, File("s", 0, 1), {0});
    store.RecordLease("r", 4, 2, "w0");
  }
  RunStore store(folder_.path());
  const RunRecord record = store.Load("r");
  EXPECT_EQ(record.scored.at("t").size(), 1u);
  EXPECT_EQ(record.attempts.at(4), 2);
  EXPECT_TRUE(store.Load("another").generated.empty());
}

TEST_F(RunStoreTest, LostGenerationsTakeTheirScoresWithThem) {
  RunStore store(folder_.path());
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
  {
    RunStore store(folder_.path());
  }
  {
    Database(folder_ / "state.db").Execute("PRAGMA user_version = 999");
  }
  const Error e = Caught([&] { RunStore store(folder_.path()); });
  EXPECT_NE(std::string(e.what()).find("999"), std::string::npos);
}

TEST_F(RunStoreTest, ADamagedDatabaseIsSetAside) {
  const std::string garbage(4096, 'x');
  std::ofstream(folder_ / "state.db") << garbage;
  {
    RunStore store(folder_.path());
    EXPECT_EQ(store.damaged(), folder_ / "state.db.damaged-1");
    EXPECT_EQ(ReadFile(store.damaged()), garbage);
    store.OpenRun("r", "/out");
  }
  EXPECT_TRUE(RunStore(folder_.path()).damaged().empty()) << "the fresh one is sound";
  std::ofstream(folder_ / "state.db") << garbage;
  EXPECT_EQ(RunStore(folder_.path()).damaged(), folder_ / "state.db.damaged-2");
}

// SQLite calls neither of these malformed.
TEST_F(RunStoreTest, ADamagedNameAndADamagedFormatAreFound) {
  const fs::path file = folder_ / "state.db";
  {
    RunStore store(folder_.path());
  }
  const std::string sound = ReadFile(file);
  const auto damaged = [&](size_t at, const std::string& bytes) {
    ASSERT_NE(at, std::string::npos);
    std::ofstream(file) << std::string(sound).replace(at, bytes.size(), bytes);
    EXPECT_FALSE(RunStore(folder_.path()).damaged().empty()) << bytes << " at " << at;
  };
  damaged(sound.find("granted REAL"), "grantee");
  damaged(sound.find("REFERENCES runs"), "REFERENCES puns");
  damaged(sound.find("cost TEXT"), "host");
  damaged(18, "\6");  // write version
  damaged(47, "\5");  // schema format
  std::ofstream(file) << sound;
  EXPECT_TRUE(RunStore(folder_.path()).damaged().empty());
}

TEST_F(RunStoreTest, ADatabaseThatCannotBeOpenedIsNamed) {
  fs::create_directory(folder_ / "state.db");
  const Error e = Caught([&] { RunStore store(folder_.path()); });
  EXPECT_EQ(e.kind(), ErrorKind::kInfrastructure);
  EXPECT_NE(std::string(e.what()).find((folder_ / "state.db").string()), std::string::npos)
      << e.what();
}

TEST_F(RunStoreTest, ADamagedDatabaseInUseIsNamedAndLeftAlone) {
  RunStore other(folder_.path());
  other.database().Execute("PRAGMA wal_checkpoint(TRUNCATE)");
  std::ofstream(folder_ / "state.db") << std::string(4096, 'x');
  const Error e = Caught([&] { RunStore store(folder_.path()); });
  EXPECT_NE(std::string(e.what()).find((folder_ / "state.db").string()), std::string::npos)
      << e.what();
  EXPECT_NE(std::string(e.what()).find("another evald"), std::string::npos) << e.what();
}

TEST_F(RunStoreTest, ASchemaWithoutItsTablesIsDamage) {
  {
    Database(folder_ / "state.db").Execute("CREATE TABLE other (x); PRAGMA user_version = 1");
  }
  EXPECT_FALSE(RunStore(folder_.path()).damaged().empty());
}

TEST_F(RunStoreTest, RowsThatContradictOthersAreDropped) {
  RunStore store(folder_.path());
  store.OpenRun("r", "/out");
  store.Commit("r", FileKind::kGenerations, File("a", 0, 3), {0, 1, 2});
  store.Commit("r", FileKind::kScores, File("s", 0, 3), {0, 1, 2});
  EXPECT_EQ(store.DropUnfounded("r"), 0);
  Database& database = store.database();
  // beyond the file's range
  database.Execute("UPDATE documents SET document = 7 WHERE kind = 0 AND document = 2");
  EXPECT_EQ(store.DropUnfounded("r"), 2) << "the row, and the score of document 2";
  database.Execute(
      "PRAGMA foreign_keys=OFF; UPDATE documents SET file = 99 WHERE kind = 0 AND document = 1");
  EXPECT_EQ(store.DropUnfounded("r"), 2) << "a file that is not there";
  database.Execute("UPDATE files SET attempt = 5 WHERE kind = 1");
  EXPECT_EQ(store.DropUnfounded("r"), 1) << "scores of other generations than those that count";
  const RunRecord record = store.Load("r");
  EXPECT_EQ(record.generated.at("t").size(), 1u);
  EXPECT_TRUE(record.scored.empty());
}

TEST_F(RunStoreTest, AnExceptionRollsATransactionBack) {
  RunStore store(folder_.path());
  store.OpenRun("r", "/out");
  EXPECT_THROW(store.database().Transaction([&] {
    store.Commit("r", FileKind::kGenerations, File("a", 0, 1), {0});
    throw Error(ErrorKind::kInternal, "no");
  }),
               Error);
  EXPECT_TRUE(store.Load("r").generated.empty());
}

TEST_F(RunStoreTest, TheThreadReportsOnTheLoopAfterCommitting) {
  RunStore store(folder_.path());
  store.OpenRun("r", "/out");
  Loop loop;
  int reported = 0;
  {
    DatabaseThread thread(&store, &loop, [](std::exception_ptr) { FAIL(); });
    for (int64_t i = 0; i < 100; ++i) {
      thread.Post(
          [i](RunStore& s) {
            s.Commit("r", FileKind::kGenerations, File(std::to_string(i), i, i + 1), {i});
          },
          [&] {
            if (++reported == 100) loop.Stop();
          });
    }
    loop.Run();
  }
  EXPECT_EQ(store.Load("r").generated.at("t").size(), 100u);
}

TEST_F(RunStoreTest, AFailureIsReportedOnceAndNothingMoreIsWritten) {
  RunStore store(folder_.path());
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

TEST_F(RunStoreTest, RunsOfWhichNothingWasComputedAreFoundAndRemoved) {
  RunStore store(folder_.path());
  Database& database = store.database();
  const auto add = [&](const std::string& run, const std::string& state, const std::string& user) {
    service_store::AddRun(database,
                          {0, run, "/out/" + run, 1, state, "m", user, 0, "", "{}", "", "{}"});
  };
  add("a", "cancelled", "ada");
  add("b", "failed", "ada");
  add("c", "running", "ada");
  add("d", "cancelled", "ada");
  add("e", "done", "ada");
  add("f", "cancelled", "bob");
  add("g", "incomplete", "ada");
  store.Commit("d", FileKind::kGenerations, File("x", 0, 1), {0});
  const auto unused = [&](int kept, int limit) {
    std::vector<std::string> runs;
    for (const RunRow& row : service_store::UnusedRuns(database, "ada", kept, limit))
      runs.push_back(row.run);
    return runs;
  };
  EXPECT_EQ(unused(0, 10), (std::vector<std::string>{"g", "b", "a"}));
  EXPECT_EQ(unused(1, 10), (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(unused(0, 1), std::vector<std::string>{"g"});
  service_store::AddEvent(database, {1, "a", "run.state", "{}"});
  store.RecordLease("a", 0, 1, "w");
  service_store::RemoveRun(database, "a");
  EXPECT_EQ(unused(1, 10), std::vector<std::string>{"b"});
  EXPECT_FALSE(service_store::FindRun(database, "a"));
  EXPECT_TRUE(service_store::EventsAfter(database, "a", 0, 10).empty());
  EXPECT_TRUE(store.Load("a").attempts.empty());
}

TEST_F(RunStoreTest, OldEventsOfARunAreRemovedAndTheirPlaceIsMarked) {
  RunStore store(folder_.path());
  Database& database = store.database();
  service_store::AddEvent(database, {1, "other", "run.state", "{}"}, 50);
  service_store::AddEvent(database, {2, "", "worker", "{}"}, 50);
  for (int64_t sequence = 3; sequence <= 1000; ++sequence)
    service_store::AddEvent(database, {sequence, "flood", "run.state", "{}"}, 50);
  const auto flood = service_store::EventsAfter(database, "flood", 0, 10'000);
  EXPECT_LE(flood.size(), 50u + 97 + 1);
  EXPECT_GE(flood.size(), 50u + 1);
  EXPECT_EQ(flood.front().type, "events.lost");
  EXPECT_EQ(flood.back().sequence, 1000);
  const int64_t lost = flood.front().sequence;
  for (const auto& event : service_store::EventsAfter(database, "flood", lost, 10'000))
    EXPECT_EQ(event.type, "run.state") << "who has read so far has lost nothing";
  const auto all = service_store::EventsAfter(database, "", 0, 10'000);
  EXPECT_EQ(all.size(), flood.size() + 2) << "events of others stay";
}

}  // namespace
}  // namespace evald
