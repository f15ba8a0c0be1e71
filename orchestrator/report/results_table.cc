#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "base/text.h"
#include "orchestrator/report/results.h"
#include "orchestrator/report/text_table.h"
#include "python/value.h"

namespace evald {
namespace {

constexpr size_t kColumns = 9;
constexpr size_t kShots = 3, kValue = 6, kStderr = 7, kTruncated = 8;

// The order of make_table (lm_eval/utils.py): groups with their members sorted beneath them, then
// entries of no group.
std::vector<std::pair<std::string, int>> Ordered(const Json& results) {
  const Json& members = results["group_subtasks"];
  std::set<std::string> children;
  for (const auto& [group, names] : members.items()) {
    for (const Json& name : names) children.insert(name.get<std::string>());
  }
  std::vector<std::pair<std::string, int>> ordered;
  std::set<std::string> placed;
  const std::function<void(const std::string&, int)> visit = [&](const std::string& name,
                                                                 int depth) {
    if (depth > 64) return;
    placed.insert(name);
    if (results["results"].contains(name)) ordered.emplace_back(name, depth);
    if (!members.contains(name)) return;
    auto names = members[name].get<std::vector<std::string>>();
    std::sort(names.begin(), names.end());
    for (const std::string& child : names) visit(child, depth + 1);
  };
  std::set<std::string> roots;
  for (const auto& [group, names] : members.items()) {
    if (children.count(group) == 0) roots.insert(group);
  }
  for (const std::string& root : roots) visit(root, 0);
  std::set<std::string> rest;
  for (const auto& [name, entry] : results["results"].items()) {
    if (placed.count(name) == 0) rest.insert(name);
  }
  for (const std::string& name : rest) ordered.emplace_back(name, 0);
  return ordered;
}

std::string Number(const Json& value) {
  if (value.is_number_float()) return fmt::format("{:.4f}", value.get<double>());
  constexpr size_t kBytesMax = 40;  // an aggregation of a task's own may give any text
  return Shortened(value.is_string() ? value.get<std::string>() : value.dump(), kBytesMax);
}

std::string Arrow(const Json& results, const std::string& task, const std::string& metric) {
  const auto directions = results["higher_is_better"].find(task);
  if (directions == results["higher_is_better"].end() || !directions->contains(metric)) return "";
  const Json& higher = (*directions)[metric];
  return higher.is_boolean() ? (higher.get<bool>() ? "↑" : "↓") : "";
}

// The counts of truncated answers by task, if any answer is truncated; {} otherwise.
Json TruncatedAnswersOf(const Json& results) {
  const Json facts = results.value("evald", Json::object());
  const Json counts =
      facts.is_object() ? facts.value("truncated_answers", Json::object()) : Json::object();
  for (const auto& [task, count] : counts.items()) {
    if (count.value("truncated", int64_t{0}) > 0) return counts;
  }
  return Json::object();
}

std::string TruncatedShown(const Json& counts, const std::string& task) {
  const auto found = counts.find(task);
  if (found == counts.end()) return "";
  return fmt::format("{} of {}", found->value("truncated", int64_t{0}),
                     found->value("answers", int64_t{0}));
}

std::vector<TextRow> RowsOf(const Json& results, const Json& truncated, const std::string& name,
                            int depth) {
  const Json& entry = results["results"][name];
  const std::string indent(static_cast<size_t>(depth) * 2, ' ');
  const auto version = results["versions"].find(name);
  const auto shots = results["n-shot"].find(name);
  TextRow first(kColumns);
  first[0] = indent + entry.value("alias", name);
  first[1] = version == results["versions"].end() || version->is_null() ? "" : PythonStr(*version);
  first[kTruncated] = TruncatedShown(truncated, name);
  first[kShots] = shots == results["n-shot"].end() ? "" : PythonStr(*shots);
  std::map<std::string, const Json*> metrics;
  for (const auto& [key, value] : entry.items()) {
    const size_t comma = key.find(',');
    if (comma != std::string::npos && !key.substr(0, comma).ends_with("_stderr"))
      metrics[key] = &value;
  }
  std::vector<TextRow> rows;
  for (const auto& [key, value] : metrics) {
    TextRow row(kColumns);
    if (rows.empty()) row = first;
    const size_t comma = key.find(',');
    row[2] = key.substr(comma + 1);
    row[4] = key.substr(0, comma);
    row[5] = Arrow(results, name, row[4]);
    row[kValue] = Number(*value);
    const auto error = entry.find(row[4] + "_stderr," + row[2]);
    if (error != entry.end() && *error != "N/A") row[kStderr] = "± " + Number(*error);
    rows.push_back(std::move(row));
  }
  if (rows.empty()) rows.push_back(first);
  return rows;
}

}  // namespace

std::string ResultsTable(const Json& results) {
  std::vector<TextRow> rows = {
      {"Task", "Version", "Filter", "Shots", "Metric", "", "Value", "Stderr", "Truncated"}};
  const Json truncated = TruncatedAnswersOf(results);
  for (const auto& [name, depth] : Ordered(results)) {
    for (TextRow& row : RowsOf(results, truncated, name, depth)) rows.push_back(std::move(row));
  }
  if (truncated.empty()) {
    for (TextRow& row : rows) row.pop_back();
  }
  TextTableStyle style;
  for (size_t i = 0; i < rows[0].size(); ++i)
    style.right.push_back(i == kShots || i == kValue || i == kTruncated);
  return TextTable(rows, style);
}

}  // namespace evald
