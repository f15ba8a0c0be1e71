#include "orchestrator/state/node_job_store.h"

namespace evald::node_job_store {

std::string Identity(Database& database) {
  Statement row = database.Prepare("SELECT id FROM identity");
  if (!row.Step()) throw DatabaseDamaged("state.db has lost its identity");
  return row.Text(0);
}

void Save(Database& database, const NodeJobRow& row) {
  database
      .Prepare(
          "INSERT INTO node_jobs (launcher, number, token_hash, record) VALUES (?, ?, ?, ?) ON "
          "CONFLICT (launcher, number) DO UPDATE SET token_hash = excluded.token_hash, record = "
          "excluded.record")
      .Bind(row.launcher)
      .Bind(row.number)
      .Bind(row.token_hash)
      .Bind(row.record)
      .Run();
}

void Remove(Database& database, const std::string& launcher, int64_t number) {
  database.Prepare("DELETE FROM node_jobs WHERE launcher = ? AND number = ?")
      .Bind(launcher)
      .Bind(number)
      .Run();
}

std::vector<NodeJobRow> List(Database& database, const std::string& launcher) {
  Statement list = database.Prepare(
      "SELECT number, token_hash, record FROM node_jobs WHERE launcher = ? ORDER BY number");
  list.Bind(launcher);
  std::vector<NodeJobRow> rows;
  while (list.Step()) rows.push_back({launcher, list.Integer(0), list.Text(1), list.Text(2)});
  return rows;
}

void SaveExcluded(Database& database, const std::string& launcher, const ExcludedNodes& nodes) {
  database.Prepare("DELETE FROM excluded_nodes WHERE launcher = ?").Bind(launcher).Run();
  for (const auto& [node, why] : nodes) {
    database.Prepare("INSERT INTO excluded_nodes (launcher, node, why) VALUES (?, ?, ?)")
        .Bind(launcher)
        .Bind(node)
        .Bind(why)
        .Run();
  }
}

ExcludedNodes Excluded(Database& database, const std::string& launcher) {
  Statement list = database.Prepare("SELECT node, why FROM excluded_nodes WHERE launcher = ?");
  list.Bind(launcher);
  ExcludedNodes nodes;
  while (list.Step()) nodes.emplace(list.Text(0), list.Text(1));
  return nodes;
}

}  // namespace evald::node_job_store
