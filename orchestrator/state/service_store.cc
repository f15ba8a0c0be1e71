#include "orchestrator/state/service_store.h"

#include <fmt/format.h>

namespace evald::service_store {
namespace {

constexpr const char* kColumns =
    "number, run, output, created, state, name, user, priority, checkpoint, submission, "
    "idempotency_key, resource";

// The columns for showing runs. The submission may be long and is not read.
constexpr const char* kShownColumns =
    "number, run, output, created, state, name, user, priority, checkpoint, '', idempotency_key, "
    "resource";

RunRow RowOf(const Statement& s) {
  return {s.Integer(0), s.Text(1), s.Text(2),  s.Real(3),
          s.Text(4),    s.Text(5), s.Text(6),  static_cast<int>(s.Integer(7)),
          s.Text(8),    s.Text(9), s.Text(10), s.Text(11)};
}

std::vector<RunRow> All(Statement statement) {
  std::vector<RunRow> rows;
  while (statement.Step()) rows.push_back(RowOf(statement));
  return rows;
}

std::optional<RunRow> First(Statement statement) {
  if (!statement.Step()) return std::nullopt;
  return RowOf(statement);
}

}  // namespace

int64_t AddRun(Database& database, const RunRow& row) {
  Statement insert = database.Prepare(
      "INSERT INTO runs (run, output, created, state, name, user, priority, checkpoint, "
      "submission, "
      "idempotency_key, resource) VALUES (?,?,?,?,?,?,?,?,?,?,?) RETURNING number");
  insert.Bind(row.run)
      .Bind(row.output)
      .Bind(row.created)
      .Bind(row.state)
      .Bind(row.name)
      .Bind(row.user);
  insert.Bind(static_cast<int64_t>(row.priority)).Bind(row.checkpoint).Bind(row.submission);
  insert.Bind(row.idempotency_key).Bind(row.resource);
  insert.Step();
  const int64_t number = insert.Integer(0);
  insert.Reset();
  return number;
}

std::optional<RunRow> FindRun(Database& database, const std::string& run) {
  Statement find = database.Prepare(
      fmt::format("SELECT {} FROM runs WHERE run = ? AND submission <> ''", kColumns));
  find.Bind(run);
  return First(std::move(find));
}

std::optional<RunRow> ShowRun(Database& database, const std::string& run) {
  Statement find = database.Prepare(
      fmt::format("SELECT {} FROM runs WHERE run = ? AND resource <> ''", kShownColumns));
  find.Bind(run);
  return First(std::move(find));
}

std::optional<RunRow> FindByKey(Database& database, const std::string& user,
                                const std::string& key) {
  Statement find = database.Prepare(fmt::format(
      "SELECT {} FROM runs WHERE user = ? AND idempotency_key = ? AND idempotency_key <> ''",
      kColumns));
  find.Bind(user).Bind(key);
  return First(std::move(find));
}

void UpdateRun(Database& database, const std::string& run, const std::string& state, int priority,
               const std::string& resource) {
  database.Prepare("UPDATE runs SET state = ?, priority = ?, resource = ? WHERE run = ?")
      .Bind(state)
      .Bind(static_cast<int64_t>(priority))
      .Bind(resource)
      .Bind(run)
      .Run();
}

std::vector<RunRow> Unfinished(Database& database) {
  return All(
      database.Prepare(fmt::format("SELECT {} FROM runs WHERE submission <> '' AND state NOT IN "
                                   "('done', 'incomplete', 'failed', 'cancelled') ORDER BY number",
                                   kColumns)));
}

std::vector<RunRow> ListRuns(Database& database, const RunQuery& query) {
  std::string sql =
      fmt::format("SELECT {} FROM runs WHERE resource <> '' AND number < ?", kShownColumns);
  const std::pair<const char*, const std::string*> filters[] = {{"state", &query.state},
                                                                {"user", &query.user},
                                                                {"name", &query.name},
                                                                {"checkpoint", &query.checkpoint}};
  for (const auto& [column, value] : filters) {
    if (!value->empty()) sql += fmt::format(" AND {} = ?", column);
  }
  Statement list = database.Prepare(sql + " ORDER BY number DESC LIMIT ?");
  list.Bind(query.before);
  for (const auto& [column, value] : filters) {
    if (!value->empty()) list.Bind(*value);
  }
  list.Bind(static_cast<int64_t>(query.limit));
  return All(std::move(list));
}

std::vector<RunRow> UnusedRuns(Database& database, const std::string& user, int kept, int limit) {
  Statement list = database.Prepare(
      fmt::format("SELECT {} FROM runs WHERE user = ? AND submission <> '' AND state IN "
                  "('incomplete', 'failed', 'cancelled') AND NOT EXISTS "
                  "(SELECT 1 FROM documents WHERE documents.run = runs.run) "
                  "ORDER BY number DESC LIMIT ? OFFSET ?",
                  kShownColumns));
  list.Bind(user).Bind(static_cast<int64_t>(limit)).Bind(static_cast<int64_t>(kept));
  return All(std::move(list));
}

void RemoveRun(Database& database, const std::string& run) {
  for (const char* table : {"documents", "files", "leases", "events", "runs"}) {
    database.Prepare(fmt::format("DELETE FROM {} WHERE run = ?", table)).Bind(run).Run();
  }
}

std::set<std::string> Outputs(Database& database) {
  std::set<std::string> outputs;
  Statement list = database.Prepare("SELECT output FROM runs");
  while (list.Step()) outputs.insert(list.Text(0));
  return outputs;
}

int64_t LastEvent(Database& database) {
  // The largest number ever given, not that of the largest row: progress events are replaced, and
  // no number may come twice.
  Statement last = database.Prepare("SELECT seq FROM sqlite_sequence WHERE name = 'events'");
  return last.Step() ? last.Integer(0) : 0;
}

void SkipEvents(Database& database, int64_t sequence) {
  database.Transaction([&] {
    database.Prepare("DELETE FROM sqlite_sequence WHERE name = 'events'").Run();
    database.Prepare("INSERT INTO sqlite_sequence (name, seq) VALUES ('events', ?)")
        .Bind(sequence)
        .Run();
  });
}

namespace {

/// How many events are added, of all runs, between two looks at what is kept. A prime number, so
/// that no run whose events come in a rhythm is passed over.
constexpr int64_t kLookEvery = 97;

void RemoveOldEvents(Database& database, const std::string& run, int64_t kept) {
  Statement newest = database.Prepare(
      "SELECT sequence FROM events WHERE run = ? ORDER BY sequence DESC LIMIT 1 OFFSET ?");
  newest.Bind(run).Bind(kept);
  if (!newest.Step()) return;
  const int64_t last = newest.Integer(0);
  database.Prepare("DELETE FROM events WHERE run = ? AND sequence < ?").Bind(run).Bind(last).Run();
  database.Prepare("UPDATE events SET type = 'events.lost', data = '{}' WHERE sequence = ?")
      .Bind(last)
      .Run();
}

}  // namespace

void AddEvent(Database& database, const EventRow& event, int64_t kept) {
  if (event.type == "run.progress") {
    database.Prepare("DELETE FROM events WHERE run = ? AND type = 'run.progress'")
        .Bind(event.run)
        .Run();
  }
  database.Prepare("INSERT INTO events (sequence, run, type, data) VALUES (?, ?, ?, ?)")
      .Bind(event.sequence)
      .Bind(event.run)
      .Bind(event.type)
      .Bind(event.data)
      .Run();
  if (event.sequence % kLookEvery == 0) RemoveOldEvents(database, event.run, kept);
}

std::vector<EventRow> EventsAfter(Database& database, const std::string& run, int64_t sequence,
                                  int limit) {
  Statement list = database.Prepare(fmt::format(
      "SELECT sequence, run, type, data FROM events WHERE sequence > ?{} ORDER BY sequence LIMIT ?",
      run.empty() ? "" : " AND run = ?"));
  list.Bind(sequence);
  if (!run.empty()) list.Bind(run);
  list.Bind(static_cast<int64_t>(limit));
  std::vector<EventRow> events;
  while (list.Step()) events.push_back({list.Integer(0), list.Text(1), list.Text(2), list.Text(3)});
  return events;
}

void AddWatch(Database& database, const WatchRow& row) {
  database
      .Prepare(
          "INSERT INTO watches (watch, created, definition) VALUES (?, ?, ?) ON CONFLICT DO "
          "NOTHING")
      .Bind(row.watch)
      .Bind(row.created)
      .Bind(row.definition)
      .Run();
}

void RemoveWatch(Database& database, const std::string& watch) {
  database.Prepare("DELETE FROM watches WHERE watch = ?").Bind(watch).Run();
}

std::vector<WatchRow> ListWatches(Database& database) {
  Statement list =
      database.Prepare("SELECT watch, created, definition FROM watches ORDER BY created, watch");
  std::vector<WatchRow> rows;
  while (list.Step()) rows.push_back({list.Text(0), list.Real(1), list.Text(2)});
  return rows;
}

}  // namespace evald::service_store
