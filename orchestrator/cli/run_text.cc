#include "orchestrator/cli/run_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/jsonl.h"
#include "base/text.h"
#include "http_server/target.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/cli/run_tasks.h"
#include "orchestrator/report/text_table.h"

namespace evald::cli {
namespace {

constexpr size_t kNameCells = 40;

int64_t NumberOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || !found->is_number() ? 0 : found->get<int64_t>();
}

std::string Percent(const Json& run) {
  const Json& progress = run.at("progress");
  const int64_t documents = NumberOf(progress, "documents");
  return documents == 0 ? "-" : fmt::format("{} %", 100 * NumberOf(progress, "scored") / documents);
}

std::string Remaining(const Json& run) {
  const Json& seconds = run.at("progress").at("remaining_seconds");
  if (IsOver(TextOf(run, "state"))) return "-";
  return seconds.is_number() ? HumanSeconds(seconds.get<double>()) : "-";
}

std::string Pad(const std::string& text, size_t width) {
  return text + std::string(width - std::min(width, CodePoints(text)), ' ');
}

// Without SCORES.
std::vector<std::string> CellsOf(const Json& run) {
  return {TextOf(run, "id"),  TextOf(run, "name"), TextOf(run, "state"),
          Percent(run),       Remaining(run),      std::to_string(NumberOf(run, "priority")),
          TextOf(run, "user")};
}

// The cells that a form of the table has. `name`: columns of the name; 0: no name.
std::vector<std::string> FormedRow(std::vector<std::string> cells, size_t name, bool priority,
                                   bool user) {
  if (!user) cells.erase(cells.begin() + 6);
  if (!priority) cells.erase(cells.begin() + 5);
  if (name == 0) {
    cells.erase(cells.begin() + 1);
  } else {
    cells[1] = CutToColumns(cells[1], name);
  }
  return cells;
}

std::vector<std::string> TaskLines(const Json& run, const DetailsForm& form) {
  const std::vector<TaskRow> rows = TaskRows(run, form.all);
  std::vector<std::string> counts;
  size_t name = 0, count = 0, headline = 0;
  for (const TaskRow& row : rows) {
    counts.push_back(fmt::format("{}/{}", row.scored, row.documents));
    name = std::max(name, 2 * row.depth + CodePoints(row.name));
    count = std::max(count, counts.back().size());
    headline = std::max(headline, CodePoints(row.headline));
  }
  const size_t beside = 2 + 2 + count + 2 + headline;
  name = std::clamp<size_t>(name, 8,
                            std::max<size_t>(8, form.columns - std::min(form.columns, beside)));
  std::vector<std::string> lines;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string indented = std::string(2 * rows[i].depth, ' ') + rows[i].name;
    std::string line = fmt::format("  {}  {:>{}}  {}", Pad(CutToColumns(indented, name), name),
                                   counts[i], count, rows[i].headline);
    while (line.ends_with(' ')) line.pop_back();
    lines.push_back(CutToColumns(line, form.columns));
  }
  const auto groups =
      std::count_if(rows.begin(), rows.end(), [](const TaskRow& r) { return r.group; });
  if (groups > 0 && !form.all) lines.emplace_back("  (--all shows the tasks of groups)");
  return lines;
}

}  // namespace

std::string ForTerminal(const std::string& text, bool lines) {
  return lines ? Printable(text) : PrintableLine(text);
}

std::string TextOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || !found->is_string() ? "" : ForTerminal(found->get<std::string>());
}

std::string ScoreText(const Json& run, size_t columns) {
  const std::vector<std::string> hidden = NamesUnderScoredGroups(run);
  std::vector<std::string> parts;
  for (const auto& [task, score] : run.at("scores").items()) {
    if (std::find(hidden.begin(), hidden.end(), task) != hidden.end()) continue;
    const Json value = score.is_object() ? score.value("value", Json()) : Json();
    if (value.is_number())
      parts.push_back(fmt::format("{} {:.4f}", ForTerminal(task), value.get<double>()));
    else if (value.is_string())  // "nan", "inf" or "-inf"
      parts.push_back(fmt::format("{} {}", ForTerminal(task), TextOf(score, "value")));
  }
  std::string text = Join(parts, ", ");
  for (size_t shown = parts.size(); CodePoints(text) > columns && shown-- > 0;) {
    const std::vector<std::string> first(parts.begin(),
                                         parts.begin() + static_cast<ptrdiff_t>(shown));
    text = shown == 0 ? fmt::format("{} scores", parts.size())
                      : fmt::format("{} and {} more", Join(first, ", "), parts.size() - shown);
  }
  return text;
}

void PrintJson(const Json& value) {
  const std::string line = ToLine(value) + "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);  // main reports a failure at the end
}

bool IsOver(const std::string& state) {
  return state == "done" || state == "incomplete" || state == "failed" || state == "cancelled";
}

ExitStatus StatusOfRun(const Json& run) {
  const Json& status = run.at("exit_status");
  if (!status.is_number_integer()) return ExitStatus::kIncomplete;
  const int64_t value = status.get<int64_t>();
  return value >= 0 && value <= 4 ? static_cast<ExitStatus>(value) : ExitStatus::kIncomplete;
}

ProgressSnapshot SnapshotOf(const Json& progress) {
  ProgressSnapshot snapshot;
  const Json& remaining = progress.at("remaining_seconds");
  if (remaining.is_number()) snapshot.remaining_s = remaining.get<double>();
  snapshot.elapsed_s = progress.value("elapsed_seconds", 0.0);
  for (const Json& phase : progress.at("phases")) {
    snapshot.phases.push_back({TextOf(phase, "name"), NumberOf(phase, "done"),
                               NumberOf(phase, "total"), TextOf(phase, "unit") == "bytes",
                               TextOf(phase, "note")});
  }
  for (const Json& task : progress.at("tasks")) {
    snapshot.tasks.push_back({TextOf(task, "task"), NumberOf(task, "documents"),
                              NumberOf(task, "generated"), NumberOf(task, "scored"),
                              TextOf(task, "headline")});
  }
  return snapshot;
}

std::vector<std::string> RunTable(const Json& runs, size_t columns) {
  // What may be left out, the first that leaves room for scores
  struct Form {
    size_t name;
    bool priority, user;
  };
  constexpr size_t kScoreCells = 24;
  constexpr Form kForms[] = {
      {kNameCells, true, true}, {20, true, true}, {20, true, false}, {20, false, false}, {}};
  size_t longest = 0;
  for (const Json& run : runs) longest = std::max(longest, CodePoints(ScoreText(run)));
  std::vector<std::vector<std::string>> rows;
  std::vector<size_t> widths;
  for (const Form& form : kForms) {
    rows = {FormedRow({"RUN", "NAME", "STATE", "SCORED", "LEFT", "PRIO", "USER"}, form.name,
                      form.priority, form.user)};
    for (const Json& run : runs)
      rows.push_back(FormedRow(CellsOf(run), form.name, form.priority, form.user));
    widths.assign(rows[0].size(), 0);
    size_t used = 0;
    for (size_t i = 0; i < widths.size(); ++i) {
      for (const auto& row : rows) widths[i] = std::max(widths[i], CodePoints(row[i]));
      used += widths[i] + 2;
    }
    if (used + std::min(longest, kScoreCells) <= columns) break;
  }
  std::vector<std::string> lines;
  for (size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (size_t i = 0; i < widths.size(); ++i) line += Pad(rows[r][i], widths[i]) + "  ";
    const size_t room = columns - std::min(columns, CodePoints(line));
    line += r == 0 ? "SCORES" : ScoreText(runs[r - 1], room);
    while (line.ends_with(' ')) line.pop_back();
    lines.push_back(CutToColumns(line, columns));
  }
  return lines;
}

std::vector<std::string> SetAsideLines(const Json& hosts) {
  std::vector<std::string> lines;
  for (const Json& host : hosts) {
    for (const Json& device : host.value("devices", Json::array())) {
      const std::string why = TextOf(device, "set_aside");
      if (why.empty()) continue;
      lines.push_back(fmt::format("Device {} of host {} is set aside: {}", TextOf(device, "id"),
                                  TextOf(host, "id"), why));
    }
  }
  return lines;
}

std::vector<std::string> RunDetails(const Json& run, const DetailsForm& form) {
  std::vector<std::string> lines = {fmt::format("{}  {}", TextOf(run, "id"), TextOf(run, "state"))};
  const auto add = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    for (std::string& line :
         Wrapped(fmt::format("  {:<12} {}", name, value), form.columns, 15, form.whole_words))
      lines.push_back(std::move(line));
  };
  add("name", TextOf(run, "name"));
  add("checkpoint", TextOf(run, "checkpoint"));
  add("fingerprint", TextOf(run, "fingerprint"));
  add("folder", TextOf(run, "directory"));
  add("user", TextOf(run, "user"));
  add("created", TextOf(run, "created"));
  add("ended", TextOf(run, "ended"));
  add("took", IsOver(TextOf(run, "state"))
                  ? HumanSeconds(run.at("progress").value("elapsed_seconds", 0.0))
                  : "");
  add("scored", IsOver(TextOf(run, "state")) ? "" : Percent(run) + ", left " + Remaining(run));
  for (std::string& line : TaskLines(run, form)) lines.push_back(std::move(line));
  add("verdict", TextOf(run, "verdict"));
  for (const Json& problem : run.at("problems"))
    add("problem", ForTerminal(problem.get<std::string>()));
  return lines;
}

std::string RunPath(const std::string& run) { return "/v1/runs/" + http::PercentEncode(run); }

}  // namespace evald::cli
