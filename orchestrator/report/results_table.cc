#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "base/text.h"
#include "jinja/python_value.h"
#include "orchestrator/report/results.h"

namespace evald {
namespace {

constexpr size_t kColumns = 8;
using Row = std::array<std::string, kColumns>;
constexpr size_t kShots = 3, kValue = 6, kStderr = 7;

// Columns that a terminal gives the text.
size_t DisplayWidth(const std::string& text) {
  size_t width = 0;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  utf8proc_ssize_t left = static_cast<utf8proc_ssize_t>(text.size());
  while (left > 0) {
    utf8proc_int32_t c = 0;
    const utf8proc_ssize_t used = std::max<utf8proc_ssize_t>(1, utf8proc_iterate(bytes, left, &c));
    width += c < 0 ? 1 : static_cast<size_t>(std::max(0, utf8proc_charwidth(c)));
    bytes += used;
    left -= used;
  }
  return width;
}

std::string Padded(const std::string& text, size_t width, bool right) {
  const std::string space(width - std::min(width, DisplayWidth(text)), ' ');
  return right ? space + text : text + space;
}

// The order of make_table (lm_eval/utils.py): groups with their members sorted beneath them, then
// what belongs to no group.
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
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string Arrow(const Json& results, const std::string& task, const std::string& metric) {
  const auto directions = results["higher_is_better"].find(task);
  if (directions == results["higher_is_better"].end() || !directions->contains(metric)) return "";
  const Json& higher = (*directions)[metric];
  return higher.is_boolean() ? (higher.get<bool>() ? "↑" : "↓") : "";
}

std::vector<Row> RowsOf(const Json& results, const std::string& name, int depth) {
  const Json& entry = results["results"][name];
  const std::string indent(static_cast<size_t>(depth) * 2, ' ');
  const auto version = results["versions"].find(name);
  const auto shots = results["n-shot"].find(name);
  Row first;
  first[0] = indent + entry.value("alias", name);
  first[1] =
      version == results["versions"].end() || version->is_null() ? "" : jinja::PythonStr(*version);
  first[kShots] = shots == results["n-shot"].end() ? "" : jinja::PythonStr(*shots);
  std::map<std::string, const Json*> metrics;
  for (const auto& [key, value] : entry.items()) {
    const size_t comma = key.find(',');
    if (comma != std::string::npos && !key.substr(0, comma).ends_with("_stderr"))
      metrics[key] = &value;
  }
  std::vector<Row> rows;
  for (const auto& [key, value] : metrics) {
    Row row;
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
  std::vector<Row> rows = {{"Task", "Version", "Filter", "Shots", "Metric", "", "Value", "Stderr"}};
  for (const auto& [name, depth] : Ordered(results)) {
    for (Row& row : RowsOf(results, name, depth)) rows.push_back(std::move(row));
  }
  std::array<size_t, kColumns> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  }
  std::string text;
  for (size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (size_t i = 0; i < kColumns; ++i) {
      const bool right = i == kShots || i == kValue;
      line += Padded(rows[r][i], widths[i], right) + (i + 1 < kColumns ? "  " : "");
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text += line + "\n";
    if (r > 0) continue;
    for (size_t i = 0; i < kColumns; ++i) {
      for (size_t j = 0; j < widths[i]; ++j) text += "─";
      text += i + 1 < kColumns ? "  " : "";
    }
    text += "\n";
  }
  return text;
}

}  // namespace evald
