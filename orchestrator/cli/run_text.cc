#include "orchestrator/cli/run_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/jsonl.h"
#include "base/text.h"
#include "http_server/target.h"
#include "orchestrator/cli/cli.h"

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

// Cuts text to terminal cells, counted as code points.
std::string Cut(const std::string& text, size_t length) {
  if (CodePoints(text) <= length) return text;
  size_t bytes = 0;
  for (size_t seen = 0; bytes < text.size(); ++bytes) {
    if ((text[bytes] & 0xC0) != 0x80 && ++seen > length - 1) break;
  }
  return text.substr(0, bytes) + "…";
}

std::string Pad(const std::string& text, size_t width) {
  return text + std::string(width - std::min(width, CodePoints(text)), ' ');
}

}  // namespace

std::string ForTerminal(const std::string& text, bool lines) {
  return lines ? Printable(text) : PrintableLine(text);
}

std::string TextOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || !found->is_string() ? "" : ForTerminal(found->get<std::string>());
}

std::string ScoreText(const Json& run) {
  std::vector<std::string> parts;
  for (const auto& [task, score] : run.at("scores").items()) {
    const Json value = score.is_object() ? score.value("value", Json()) : Json();
    if (value.is_number())
      parts.push_back(fmt::format("{} {:.4f}", ForTerminal(task), value.get<double>()));
    else if (value.is_string())  // "nan", "inf" or "-inf"
      parts.push_back(fmt::format("{} {}", ForTerminal(task), TextOf(score, "value")));
  }
  return Join(parts, ", ");
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
  std::vector<std::vector<std::string>> rows = {
      {"RUN", "NAME", "STATE", "SCORED", "LEFT", "PRIO", "USER", "SCORES"}};
  for (const Json& run : runs) {
    rows.push_back({TextOf(run, "id"), Cut(TextOf(run, "name"), kNameCells), TextOf(run, "state"),
                    Percent(run), Remaining(run), std::to_string(NumberOf(run, "priority")),
                    TextOf(run, "user"), ScoreText(run)});
  }
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], CodePoints(row[i]));
  }
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += Pad(row[i], widths[i]) + "  ";
    while (line.ends_with(' ')) line.pop_back();
    lines.push_back(Cut(line, columns));
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

std::vector<std::string> RunDetails(const Json& run) {
  std::vector<std::string> lines = {fmt::format("{}  {}", TextOf(run, "id"), TextOf(run, "state"))};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) lines.push_back(fmt::format("  {:<12} {}", name, value));
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
  for (const Json& task : run.at("progress").at("tasks")) {
    lines.push_back(fmt::format("  {:<34} {:>7}/{:<7} {}", TextOf(task, "task"),
                                NumberOf(task, "scored"), NumberOf(task, "documents"),
                                TextOf(task, "headline")));
  }
  add("verdict", TextOf(run, "verdict"));
  for (const Json& problem : run.at("problems"))
    add("problem", ForTerminal(problem.get<std::string>()));
  return lines;
}

std::string RunPath(const std::string& run) { return "/v1/runs/" + http::PercentEncode(run); }

}  // namespace evald::cli
