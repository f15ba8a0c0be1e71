#include "orchestrator/state/run_store.h"

#include <fmt/format.h>

#include <set>

#include "base/clock.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr int64_t kSchemaVersion = 7;

// The statements of version n bring a database from version n - 1. They never change once released.
constexpr const char* kVersion1 = R"sql(
CREATE TABLE runs (
  run TEXT PRIMARY KEY,
  output TEXT NOT NULL,
  created REAL NOT NULL,
  state TEXT NOT NULL              -- running, done, incomplete
) WITHOUT ROWID;
CREATE TABLE leases (
  run TEXT NOT NULL REFERENCES runs(run),
  trial INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  worker TEXT NOT NULL,
  granted REAL NOT NULL,
  PRIMARY KEY (run, trial, attempt)
) WITHOUT ROWID;
CREATE TABLE files (
  file INTEGER PRIMARY KEY,
  run TEXT NOT NULL REFERENCES runs(run),
  kind INTEGER NOT NULL,           -- 0 generations, 1 scores
  task TEXT NOT NULL,
  trial INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  first INTEGER NOT NULL,
  end INTEGER NOT NULL,
  path TEXT NOT NULL,
  hash TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  requests INTEGER NOT NULL,
  truncated INTEGER NOT NULL,
  tokens_in INTEGER NOT NULL,
  tokens_out INTEGER NOT NULL,
  committed REAL NOT NULL
);
CREATE INDEX files_by_run ON files (run);
-- The row makes a document's generations (kind 0) or scores (kind 1) count. The first one wins.
CREATE TABLE documents (
  run TEXT NOT NULL,
  kind INTEGER NOT NULL,
  task TEXT NOT NULL,
  document INTEGER NOT NULL,
  file INTEGER NOT NULL REFERENCES files(file),
  PRIMARY KEY (run, kind, task, document)
) WITHOUT ROWID;
)sql";

constexpr const char* kVersion2 = R"sql(
CREATE TABLE numbered_runs (
  number INTEGER PRIMARY KEY AUTOINCREMENT,  -- names the run on the wire; never used twice
  run TEXT NOT NULL UNIQUE,
  output TEXT NOT NULL,
  created REAL NOT NULL,
  state TEXT NOT NULL,               -- queued, preparing, running, paused, done, incomplete, ...
  name TEXT NOT NULL DEFAULT '',     -- of the model
  user TEXT NOT NULL DEFAULT '',
  priority INTEGER NOT NULL DEFAULT 0,
  checkpoint TEXT NOT NULL DEFAULT '',
  submission TEXT NOT NULL DEFAULT '',       -- JSON, to start it from; '' for a foreground run
  idempotency_key TEXT NOT NULL DEFAULT '',
  resource TEXT NOT NULL DEFAULT ''          -- JSON, as the REST interface shows it
);
INSERT INTO numbered_runs (run, output, created, state)
  SELECT run, output, created, state FROM runs ORDER BY created;
DROP TABLE runs;
ALTER TABLE numbered_runs RENAME TO runs;
CREATE UNIQUE INDEX runs_by_key ON runs (user, idempotency_key) WHERE idempotency_key <> '';
CREATE TABLE events (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  run TEXT NOT NULL,
  type TEXT NOT NULL,
  data TEXT NOT NULL
);
CREATE INDEX events_by_run ON events (run, sequence);
)sql";

constexpr const char* kVersion3 = R"sql(
CREATE TABLE watches (
  watch TEXT PRIMARY KEY,            -- its id
  created REAL NOT NULL,
  definition TEXT NOT NULL           -- JSON, as it was registered
) WITHOUT ROWID;
)sql";

constexpr const char* kVersion4 = R"sql(
CREATE TABLE costs (                 -- what runs measured, to estimate later ones from
  task_key TEXT NOT NULL,
  device TEXT NOT NULL,
  model TEXT NOT NULL,
  ended REAL NOT NULL,
  cost TEXT NOT NULL,                -- JSON
  PRIMARY KEY (task_key, device, model, ended)
) WITHOUT ROWID;
)sql";

// Submissions may be long. They come last in their rows, so that reading the other columns does not
// read through them. The indexes answer lists of a user's or a checkpoint's runs: an index names
// rows in the order of `number`.
constexpr const char* kVersion5 = R"sql(
CREATE TABLE ordered_runs (
  number INTEGER PRIMARY KEY AUTOINCREMENT,  -- names the run on the wire; never used twice
  run TEXT NOT NULL UNIQUE,
  output TEXT NOT NULL,
  created REAL NOT NULL,
  state TEXT NOT NULL,               -- queued, preparing, running, paused, done, incomplete, ...
  name TEXT NOT NULL DEFAULT '',     -- of the model
  user TEXT NOT NULL DEFAULT '',
  priority INTEGER NOT NULL DEFAULT 0,
  checkpoint TEXT NOT NULL DEFAULT '',
  idempotency_key TEXT NOT NULL DEFAULT '',
  resource TEXT NOT NULL DEFAULT '',         -- JSON, as the REST interface shows it; '' for a foreground run
  submission TEXT NOT NULL DEFAULT ''        -- JSON, to start it from; '' for a foreground run
);
INSERT INTO ordered_runs (number, run, output, created, state, name, user, priority, checkpoint, idempotency_key,
    resource, submission)
  SELECT number, run, output, created, state, name, user, priority, checkpoint, idempotency_key, resource, submission
  FROM runs ORDER BY number;
DELETE FROM sqlite_sequence WHERE name = 'ordered_runs';
INSERT INTO sqlite_sequence (name, seq) SELECT 'ordered_runs', seq FROM sqlite_sequence WHERE name = 'runs';
DROP TABLE runs;
ALTER TABLE ordered_runs RENAME TO runs;
CREATE UNIQUE INDEX runs_by_key ON runs (user, idempotency_key) WHERE idempotency_key <> '';
CREATE INDEX runs_by_user ON runs (user, number);
CREATE INDEX runs_by_name ON runs (name, number);
CREATE INDEX runs_by_checkpoint ON runs (checkpoint, number);
CREATE INDEX runs_by_state ON runs (state, number);
)sql";

constexpr const char* kVersion6 = R"sql(
CREATE TABLE identity (id TEXT NOT NULL);
INSERT INTO identity (id) VALUES (lower(hex(randomblob(4))));
CREATE TABLE node_jobs (             -- of launchers
  launcher TEXT NOT NULL,
  number INTEGER NOT NULL,
  token_hash TEXT NOT NULL,          -- of its agent's token
  record TEXT NOT NULL,              -- JSON
  PRIMARY KEY (launcher, number)
) WITHOUT ROWID;
)sql";

constexpr const char* kVersion7 = R"sql(
CREATE TABLE excluded_nodes (        -- of launchers
  launcher TEXT NOT NULL,
  node TEXT NOT NULL,
  why TEXT NOT NULL,
  PRIMARY KEY (launcher, node)
) WITHOUT ROWID;
)sql";

constexpr const char* kVersions[kSchemaVersion] = {kVersion1, kVersion2, kVersion3, kVersion4,
                                                   kVersion5, kVersion6, kVersion7};

// "<table>.<column>" of all tables, and all references between tables.
std::set<std::string> Columns(Database& database) {
  std::set<std::string> columns;
  Statement row = database.Prepare(
      "SELECT t.name || '.' || c.name FROM sqlite_schema t, pragma_table_info(t.name) c WHERE "
      "t.type = 'table' "
      "UNION ALL SELECT t.name || '.' || k.\"from\" || ' to ' || k.\"table\" || '.' || k.\"to\" "
      "FROM sqlite_schema t, pragma_foreign_key_list(t.name) k WHERE t.type = 'table'");
  while (row.Step()) columns.insert(row.Text(0));
  return columns;
}

// SQLite reads a name in the schema as it is. A damaged name is only noticed when a statement does
// not find it.
void CheckColumns(Database& database) {
  Database sound = Database::InMemory();
  for (const char* version : kVersions) sound.Execute(version);
  const std::set<std::string> found = Columns(database);
  for (const std::string& column : Columns(sound)) {
    if (found.count(column) == 0)
      throw DatabaseDamaged(fmt::format("state.db has no {} any more", column));
  }
}

void Migrate(Database& database) {
  // A table to which others refer is replaced as in https://www.sqlite.org/lang_altertable.html
  // (section 7): foreign keys are not enforced meanwhile. A transaction cannot switch that off.
  database.Execute("PRAGMA foreign_keys=OFF");
  database.Transaction([&] {
    Statement version = database.Prepare("PRAGMA user_version");
    version.Step();
    const int64_t found = version.Integer(0);
    version.Reset();
    if (found > kSchemaVersion) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("state.db has schema version {}, this evald knows up to {}", found,
                              kSchemaVersion),
                  "use the newer evald, or another state_dir");
    }
    if (found == kSchemaVersion) return;
    Statement tables = database.Prepare(
        "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'runs'");
    tables.Step();
    if (found < 0 || (tables.Integer(0) > 0) != (found > 0)) {
      throw DatabaseDamaged(
          fmt::format("state.db has schema version {}, but not its tables", found));
    }
    tables.Reset();
    for (int64_t v = found; v < kSchemaVersion; ++v) database.Execute(kVersions[v]);
    database.Execute(fmt::format("PRAGMA user_version = {}", kSchemaVersion));
  });
  CheckColumns(database);
  database.Execute("PRAGMA foreign_keys=ON");
}

}  // namespace

RunStore::RunStore(const std::filesystem::path& state_dir)
    : sound_(OpenSoundDatabase(state_dir, Migrate)) {}

int64_t RunStore::OpenRun(const std::string& run, const std::filesystem::path& output) {
  Statement open = database_.Prepare(
      "INSERT INTO runs (run, output, created, state) VALUES (?, ?, ?, 'running') "
      "ON CONFLICT (run) DO UPDATE SET state = 'running', output = excluded.output RETURNING "
      "number");
  open.Bind(run).Bind(output.string()).Bind(WallSeconds());
  open.Step();
  const int64_t number = open.Integer(0);
  open.Step();  // to the end: outside a transaction the row is written now, and a failure is seen
  open.Reset();
  return number;
}

void RunStore::SetState(const std::string& run, const std::string& state) {
  database_.Prepare("UPDATE runs SET state = ? WHERE run = ?").Bind(state).Bind(run).Run();
}

RunRecord RunStore::Load(const std::string& run) {
  RunRecord record;
  std::map<int64_t, std::pair<FileKind, size_t>> place;  // file -> its place in the record
  Statement files = database_.Prepare(
      "SELECT file, kind, task, trial, attempt, first, end, path, hash, bytes, requests, "
      "truncated, "
      "tokens_in, tokens_out FROM files WHERE run = ? ORDER BY file");
  files.Bind(run);
  while (files.Step()) {
    const FileKind kind = files.Integer(1) == 0 ? FileKind::kGenerations : FileKind::kScores;
    auto& list = kind == FileKind::kGenerations ? record.generations : record.scores;
    place[files.Integer(0)] = {kind, list.size()};
    list.push_back({files.Text(2), files.Integer(3), static_cast<int>(files.Integer(4)),
                    files.Integer(5), files.Integer(6), files.Text(7), files.Text(8),
                    static_cast<uint64_t>(files.Integer(9)), files.Integer(10), files.Integer(11),
                    files.Integer(12), files.Integer(13)});
  }
  Statement documents =
      database_.Prepare("SELECT task, document, file FROM documents WHERE run = ?");
  documents.Bind(run);
  while (documents.Step()) {
    const auto [kind, index] = place.at(documents.Integer(2));
    auto& map = kind == FileKind::kGenerations ? record.generated : record.scored;
    map[documents.Text(0)][documents.Integer(1)] = index;
  }
  Statement leases =
      database_.Prepare("SELECT trial, max(attempt) FROM leases WHERE run = ? GROUP BY trial");
  leases.Bind(run);
  while (leases.Step()) record.attempts[leases.Integer(0)] = static_cast<int>(leases.Integer(1));
  return record;
}

void RunStore::RecordLease(const std::string& run, int64_t trial, int attempt,
                           const std::string& worker) {
  database_
      .Prepare(
          "INSERT OR IGNORE INTO leases (run, trial, attempt, worker, granted) "
          "VALUES (?, ?, ?, ?, ?)")
      .Bind(run)
      .Bind(trial)
      .Bind(static_cast<int64_t>(attempt))
      .Bind(worker)
      .Bind(WallSeconds())
      .Run();
}

std::vector<int64_t> RunStore::Commit(const std::string& run, FileKind kind,
                                      const CommittedFile& file,
                                      const std::vector<int64_t>& documents) {
  const int64_t kind_number = kind == FileKind::kGenerations ? 0 : 1;
  Statement insert_file = database_.Prepare(
      "INSERT INTO files (run, kind, task, trial, attempt, first, end, path, hash, bytes, "
      "requests, "
      "truncated, tokens_in, tokens_out, committed) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) "
      "RETURNING file");
  insert_file.Bind(run).Bind(kind_number).Bind(file.task).Bind(file.trial);
  insert_file.Bind(static_cast<int64_t>(file.attempt)).Bind(file.first).Bind(file.end);
  insert_file.Bind(file.path).Bind(file.hash).Bind(static_cast<int64_t>(file.bytes));
  insert_file.Bind(file.requests).Bind(file.truncated).Bind(file.tokens_in).Bind(file.tokens_out);
  insert_file.Bind(WallSeconds());
  insert_file.Step();
  const int64_t file_id = insert_file.Integer(0);
  insert_file.Reset();

  std::vector<int64_t> won;
  Statement insert = database_.Prepare(
      "INSERT INTO documents (run, kind, task, document, file) VALUES (?, ?, ?, ?, ?) "
      "ON CONFLICT DO NOTHING RETURNING document");
  for (const int64_t document : documents) {
    insert.Bind(run).Bind(kind_number).Bind(file.task).Bind(document).Bind(file_id);
    if (insert.Step()) won.push_back(document);
    insert.Reset();
  }
  return won;
}

int64_t RunStore::DropUnfounded(const std::string& run) {
  // A document's row must lie in the range of its file, and have the file's kind and task.
  Statement ranges = database_.Prepare(
      "DELETE FROM documents WHERE run = ? AND NOT EXISTS (SELECT 1 FROM files f WHERE f.file = "
      "documents.file "
      "AND f.run = documents.run AND f.kind = documents.kind AND f.task = documents.task "
      "AND documents.document >= f.first AND documents.document < f.end)");
  ranges.Bind(run).Run();
  int64_t dropped = database_.changes();
  // Scores must be scores of the generations that count: both files have the same trial and
  // attempt.
  Statement scores = database_.Prepare(
      "DELETE FROM documents WHERE run = ? AND kind = 1 AND NOT EXISTS (SELECT 1 FROM documents g "
      "JOIN files gf ON gf.file = g.file JOIN files sf ON sf.file = documents.file "
      "WHERE g.run = documents.run AND g.kind = 0 AND g.task = documents.task AND g.document = "
      "documents.document "
      "AND gf.trial = sf.trial AND gf.attempt = sf.attempt)");
  scores.Bind(run).Run();
  return dropped + database_.changes();
}

void RunStore::Forget(const std::string& run, FileKind kind, const std::string& path) {
  const int64_t kind_number = kind == FileKind::kGenerations ? 0 : 1;
  const char* const kFiles = "SELECT file FROM files WHERE run = ? AND kind = ? AND path = ?";
  if (kind == FileKind::kGenerations) {  // scores of lost generations do not count either
    database_
        .Prepare(fmt::format("DELETE FROM documents WHERE kind = 1 AND (run, task, document) IN "
                             "(SELECT run, task, document FROM documents WHERE file IN ({}))",
                             kFiles))
        .Bind(run)
        .Bind(kind_number)
        .Bind(path)
        .Run();
  }
  database_.Prepare(fmt::format("DELETE FROM documents WHERE file IN ({})", kFiles))
      .Bind(run)
      .Bind(kind_number)
      .Bind(path)
      .Run();
  database_.Prepare("DELETE FROM files WHERE run = ? AND kind = ? AND path = ?")
      .Bind(run)
      .Bind(kind_number)
      .Bind(path)
      .Run();
}

}  // namespace evald
