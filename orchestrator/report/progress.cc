#include "orchestrator/report/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/print.h"
#include "base/text.h"
#include "orchestrator/report/text_table.h"

namespace evald {
namespace {

// Terminals of fewer columns have shorter bars.
constexpr int kWideColumns = 104;
constexpr double kLineEverySeconds = 5;

std::string Bar(double share, int cells) {
  const int filled = static_cast<int>(std::clamp(share, 0.0, 1.0) * cells);
  std::string bar;
  for (int i = 0; i < cells; ++i) bar += i < filled ? "━" : "╌";
  return bar;
}

std::string Count(const PhaseProgress& phase) {
  if (phase.total == 0) return "waiting";
  if (phase.bytes) {
    return fmt::format("{} of {}", HumanBytes(static_cast<uint64_t>(phase.done)),
                       HumanBytes(static_cast<uint64_t>(phase.total)));
  }
  return fmt::format("{} of {}", phase.done, phase.total);
}

double ShareOf(const PhaseProgress& phase) {
  return phase.total == 0 ? 0 : static_cast<double>(phase.done) / static_cast<double>(phase.total);
}

// Cuts text to `columns`. Characters that a terminal would obey are spelled out.
std::string Fit(const std::string& text, int columns) {
  return CutToColumns(PrintableLine(text), static_cast<size_t>(columns));
}

std::string TaskLine(const TaskProgress& task, int columns) {
  const double share = task.documents == 0 ? 0
                                           : static_cast<double>(task.generated + task.scored) /
                                                 static_cast<double>(2 * task.documents);
  const bool wide = columns >= kWideColumns;
  return fmt::format("    {:<{}} {} {:>5} generated {:>5} scored of {}  {}",
                     Fit(task.name, wide ? 30 : 24), wide ? 30 : 24, Bar(share, wide ? 24 : 10),
                     task.generated, task.scored, task.documents, task.headline);
}

// What is being waited for, and how long that may take yet.
std::string Notice(const ProgressSnapshot& snapshot) {
  if (snapshot.notice_s < 0) return "stopping: " + snapshot.notice;
  return fmt::format("stopping in about {}: {}", HumanSeconds(snapshot.notice_s), snapshot.notice);
}

}  // namespace

std::vector<std::string> RenderProgress(const ProgressSnapshot& snapshot, int columns, int rows) {
  std::vector<std::string> lines;
  for (const PhaseProgress& phase : snapshot.phases) {
    const int cells = columns >= kWideColumns ? 24 : 14;
    lines.push_back(Fit(fmt::format("  {:<10} {} {:>20}  {}", phase.name,
                                    Bar(ShareOf(phase), cells), Count(phase), phase.note),
                        columns));
  }
  // Tasks under way have a line each; finished and waiting tasks are only counted.
  size_t done = 0, waiting = 0;
  std::vector<const TaskProgress*> active;
  for (const TaskProgress& task : snapshot.tasks) {
    if (task.scored == task.documents) {
      ++done;
    } else if (task.generated == 0 && task.scored == 0) {
      ++waiting;
    } else {
      active.push_back(&task);
    }
  }
  std::vector<std::string> last;
  std::string time = fmt::format("  {} elapsed", HumanSeconds(snapshot.elapsed_s));
  if (snapshot.remaining_s >= 0 && snapshot.notice.empty())
    time += fmt::format(", about {} left", HumanSeconds(snapshot.remaining_s));
  if (!snapshot.tasks.empty()) {
    time += fmt::format("; tasks: {} done, {} under way, {} waiting", done, active.size(), waiting);
  }
  last.push_back(Fit(time, columns));
  if (!snapshot.remark.empty()) last.push_back(Fit("  " + snapshot.remark, columns));
  if (!snapshot.notice.empty()) {
    const std::string notice = PrintableLine(Notice(snapshot));
    for (const std::string& line :
         Wrapped("  " + notice, static_cast<size_t>(std::max(columns, 8)), 2))
      last.push_back(Fit(line, columns));
  }
  const int below = static_cast<int>(last.size()) + 1;
  const size_t room =
      static_cast<size_t>(std::max(0, rows - static_cast<int>(lines.size()) - below));
  for (size_t i = 0; i < std::min(room, active.size()); ++i) {
    lines.push_back(Fit(TaskLine(*active[i], columns), columns));
  }
  lines.insert(lines.end(), last.begin(), last.end());
  if (static_cast<int>(lines.size()) > rows)  // the last ones say most
    lines.erase(lines.begin(), lines.end() - std::max(rows, 1));
  return lines;
}

double Countdown::Left(double estimate_s, double now_s) {
  if (estimate_s < 0) return -1;
  const double left = end_s_ - now_s;
  const bool other = estimate_s < 0.7 * left - 1 || estimate_s > 1.5 * std::max(left, 0.0) + 5;
  if (end_s_ < 0 || other) end_s_ = now_s + estimate_s;
  return std::max(0.0, end_s_ - now_s);
}

ProgressDisplay::ProgressDisplay(bool quiet) : quiet_(quiet) {
  const char* term = std::getenv("TERM");
  terminal_ = ::isatty(STDERR_FILENO) == 1 && term != nullptr && std::strcmp(term, "dumb") != 0;
}

ProgressDisplay::~ProgressDisplay() = default;

void ProgressDisplay::Show(const ProgressSnapshot& snapshot) {
  if (quiet_) return;
  if (terminal_) {
    Redraw(snapshot);
  } else {
    PrintLine(snapshot, false);
  }
}

void ProgressDisplay::Finish(const ProgressSnapshot& snapshot) {
  if (quiet_) return;
  if (terminal_) {
    Redraw(snapshot);
    lines_drawn_ = 0;
  } else {
    PrintLine(snapshot, true);
  }
}

void ProgressDisplay::Redraw(const ProgressSnapshot& snapshot) {
  struct winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) size = {24, 80, 0, 0};
  const auto lines = RenderProgress(snapshot, size.ws_col, std::min<int>(size.ws_row - 1, 16));
  std::string out;
  if (lines_drawn_ > 0) out += fmt::format("\x1b[{}A", lines_drawn_);
  for (const std::string& line : lines) out += "\r\x1b[2K" + line + "\n";
  out += "\x1b[J";
  lines_drawn_ = static_cast<int>(lines.size());
  std::fwrite(out.data(), 1, out.size(), stderr);
  std::fflush(stderr);
}

void ProgressDisplay::PrintLine(const ProgressSnapshot& snapshot, bool last) {
  for (const TaskProgress& task : snapshot.tasks) {
    if (task.headline.empty() ||
        std::find(announced_.begin(), announced_.end(), task.name) != announced_.end()) {
      continue;
    }
    announced_.push_back(task.name);
    Print(stderr, "evald: {:>8}  {}: {} documents, {}\n", HumanSeconds(snapshot.elapsed_s),
          task.name, task.documents, task.headline);
  }
  const bool news = snapshot.notice != noticed_;
  if (!last && !news && snapshot.elapsed_s < next_line_at_s_) return;
  std::vector<std::string> parts;
  for (const PhaseProgress& phase : snapshot.phases) {
    if (phase.total > 0) parts.push_back(fmt::format("{} {}", phase.name, Count(phase)));
  }
  if (parts.empty()) return;  // the run has not begun
  next_line_at_s_ = snapshot.elapsed_s + kLineEverySeconds;
  noticed_ = snapshot.notice;
  if (!snapshot.notice.empty()) parts.push_back(Notice(snapshot));
  Print(stderr, "evald: {:>8}  {}\n", HumanSeconds(snapshot.elapsed_s), Join(parts, ", "));
}

}  // namespace evald
