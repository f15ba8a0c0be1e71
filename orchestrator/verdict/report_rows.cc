#include <fmt/format.h>

#include <cmath>

#include "metrics/scoring/score_number.h"
#include "orchestrator/verdict/reports.h"

namespace evald {

std::string Shown(double value) {
  if (std::abs(value) >= 1000) return fmt::format("{:.6g}", value);
  return fmt::format("{:.4f}", value == 0 ? 0.0 : value);
}

std::string ShownInterval(const Json& comparison) {
  const auto interval = comparison.find("interval");
  if (interval == comparison.end()) return "";
  return fmt::format("{} to {}", Shown((*interval)[0].get<double>()),
                     Shown((*interval)[1].get<double>()));
}

namespace {

std::string TruncatedShown(const Json& results, const std::string& task) {
  const Json facts = results.value("evald", Json());
  const Json tasks = facts.is_object() ? facts.value("truncated_answers", Json()) : Json();
  const Json count = tasks.is_object() ? tasks.value(task, Json()) : Json();
  if (!count.is_object() || !count.contains("truncated") || !count.contains("answers")) return "";
  return fmt::format("{} of {}", count["truncated"].dump(), count["answers"].dump());
}

}  // namespace

std::vector<ResultRow> ResultRows(const Json& results) {
  std::vector<ResultRow> rows;
  if (!results.is_object() || !results.contains("results")) return rows;
  for (const auto& [task, entry] : results["results"].items()) {
    for (const auto& [key, value] : entry.items()) {
      const size_t comma = key.find(',');
      if (comma == std::string::npos || key.substr(0, comma).ends_with("_stderr") ||
          !IsScoreNumber(value))
        continue;
      ResultRow row{
          task, key.substr(0, comma), key.substr(comma + 1), NumberFromScore(value), "", "", ""};
      const auto error = entry.find(row.metric + "_stderr," + row.filter);
      if (error != entry.end() && error->is_number())
        row.error = "± " + Shown(error->get<double>());
      const auto documents = entry.find("sample_len");
      if (documents != entry.end() && documents->is_number()) row.documents = documents->dump();
      row.truncated = TruncatedShown(results, task);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace evald
