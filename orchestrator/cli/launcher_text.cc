#include "orchestrator/cli/launcher_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <set>

#include "base/text.h"
#include "orchestrator/cli/run_text.h"
#include "orchestrator/report/text_table.h"

namespace evald::cli {
namespace {

constexpr const char* kNone = "–";

// "14:05" of a time in RFC 3339, on the reader's clock; another day's with its date. "" if the
// member is null.
std::string ClockOf(const Json& object, const char* name) {
  const std::string text = TextOf(object, name);
  std::tm parts{};
  if (text.empty() || ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr) return "";
  const std::tm then = fmt::localtime(::timegm(&parts));
  const std::tm now = fmt::localtime(std::time(nullptr));
  const bool today = then.tm_year == now.tm_year && then.tm_yday == now.tm_yday;
  if (today) return fmt::format("{:%H:%M}", then);
  const bool this_year = then.tm_year == now.tm_year;
  return this_year ? fmt::format("{:%b %d %H:%M}", then) : fmt::format("{:%b %d %Y}", then);
}

std::string Counted(size_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

int64_t CountOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || !found->is_number() ? 0 : found->get<int64_t>();
}

bool Waits(const Json& job) {
  const std::string state = TextOf(job, "state");
  return state == "waiting" || state == "submitted" || state == "submitting";
}

bool IsHere(const Json& job) {
  const std::string state = TextOf(job, "state");
  return state == "working" || state == "idle";
}

// "3 jobs wait (Resources), the first expected 14:05"
std::string WaitingPart(const Json& jobs) {
  size_t waiting = 0;
  std::set<std::string> reasons;
  const Json* first = nullptr;
  for (const Json& job : jobs) {
    if (!Waits(job)) continue;
    ++waiting;
    if (const std::string reason = TextOf(job, "reason"); !reason.empty()) reasons.insert(reason);
    const std::string starts = TextOf(job, "starts_at");  // RFC 3339 of UTC: in the order of time
    if (!starts.empty() && (first == nullptr || starts < TextOf(*first, "starts_at"))) first = &job;
  }
  if (waiting == 0) return "";
  std::string text = ", " + Counted(waiting, "job waits", "jobs wait");
  if (!reasons.empty()) text += " (" + Join({reasons.begin(), reasons.end()}, ", ") + ")";
  if (first != nullptr) text += ", the first expected " + ClockOf(*first, "starts_at");
  return text;
}

// "Launcher slurm: 2 of at most 16 nodes, 3 jobs wait (Resources), the first expected 14:05"
std::string NodesLine(const Json& launcher) {
  const Json& nodes = launcher.at("nodes");
  const Json& jobs = launcher.at("jobs");
  const auto here = std::count_if(jobs.begin(), jobs.end(), IsHere);
  const auto starting = std::count_if(
      jobs.begin(), jobs.end(), [](const Json& job) { return TextOf(job, "state") == "starting"; });
  std::string line =
      fmt::format("Launcher {}: {} of at most {}", TextOf(launcher, "name"), here,
                  Counted(static_cast<size_t>(CountOf(nodes, "max")), "node", "nodes"));
  if (starting > 0) line += fmt::format(", {} starting", starting);
  line += WaitingPart(jobs);
  const Json& most = launcher.at("node_hours_per_day");
  if (most.is_number()) {
    line += fmt::format(", {:.1f} of {:g} node hours used", launcher.value("node_hours", 0.0),
                        most.get<double>());
  }
  return line;
}

std::vector<std::string> ProblemLines(const Json& launcher) {
  std::vector<std::string> lines;
  for (const Json& problem : launcher.at("problems")) {
    lines.push_back(fmt::format("Launcher {}: {}", TextOf(launcher, "name"),
                                ForTerminal(problem.get<std::string>())));
  }
  const std::string next = ClockOf(launcher, "next_try_at");
  if (!next.empty()) {
    lines.push_back(
        fmt::format("Launcher {}: no job is submitted before {}", TextOf(launcher, "name"), next));
  }
  return lines;
}

std::string OrNone(const std::string& text) { return text.empty() ? kNone : text; }

TextRow RowOf(const Json& job) {
  const std::string word = TextOf(job, "word");
  const bool plain =
      std::set<std::string>{"", "PENDING", "RUNNING", "pending", "running"}.count(word) > 0;
  const std::string expected = ClockOf(job, "starts_at"), since = ClockOf(job, "started_at");
  const std::string start = !since.empty()      ? "since " + since
                            : !expected.empty() ? "expected " + expected
                                                : kNone;
  const std::string why = TextOf(job, "why");
  return {OrNone(TextOf(job, "job")),
          TextOf(job, "state") + (plain ? "" : " (" + word + ")"),
          OrNone(TextOf(job, "node")),
          start,
          OrNone(ClockOf(job, "ends_at")),
          TextOf(job, "host"),
          why.empty() ? TextOf(job, "reason") : why};
}

std::vector<std::string> JobTable(const Json& jobs, size_t columns) {
  std::vector<TextRow> rows = {{"JOB", "STATE", "NODE", "START", "ENDS", "HOST", "REASON"}};
  for (const Json& job : jobs) rows.push_back(RowOf(job));
  const TextTableStyle style{.right = std::vector<bool>(rows[0].size(), false), .indent = 2};
  std::vector<std::string> lines = Split(TextTable(rows, style), '\n');
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  for (std::string& line : lines) line = CutToColumns(line, columns);
  return lines;
}

}  // namespace

std::vector<std::string> LauncherLines(const Json& launchers) {
  std::vector<std::string> lines;
  for (const Json& launcher : launchers) {
    lines.push_back(NodesLine(launcher));
    for (std::string& line : ProblemLines(launcher)) lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> LauncherTables(const Json& launchers, size_t columns, bool whole_words) {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& sentence) {
    for (std::string& line : Wrapped(sentence, columns, 2, whole_words))
      lines.push_back(std::move(line));
  };
  for (const Json& launcher : launchers) {
    add(NodesLine(launcher));
    if (!launcher.at("jobs").empty()) {
      std::vector<std::string> table = JobTable(launcher.at("jobs"), columns);
      lines.insert(lines.end(), std::make_move_iterator(table.begin()),
                   std::make_move_iterator(table.end()));
    }
    for (const std::string& line : ProblemLines(launcher)) add(line);
  }
  return lines;
}

std::vector<std::string> ExcludedBy(const Json& launchers, const std::string& node) {
  std::vector<std::string> names;
  for (const Json& launcher : launchers) {
    const Json& excluded = launcher.at("excluded");
    if (std::any_of(excluded.begin(), excluded.end(),
                    [&](const Json& one) { return one.value("node", "") == node; }))
      names.push_back(launcher.value("name", ""));
  }
  return names;
}

}  // namespace evald::cli
