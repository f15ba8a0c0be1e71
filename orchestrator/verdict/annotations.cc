// Workflow commands:
// https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
#include <fmt/format.h>

#include "base/text.h"
#include "orchestrator/verdict/reports.h"

namespace evald {
namespace {

// Escapes text in a workflow command: a command ends with its line; a property also ends at ',' and
// ':'.
std::string Escaped(const std::string& text, bool property) {
  std::string escaped;
  for (const char c : text) {
    if (c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','))) {
      escaped += fmt::format("%{:02X}", static_cast<unsigned>(c));
    } else {
      escaped += c;
    }
  }
  return Printable(escaped);
}

std::string WorkflowCommand(const char* level, const std::string& title,
                            const std::string& message) {
  return fmt::format("::{} title={}::{}\n", level, Escaped(title, true), Escaped(message, false));
}

}  // namespace

std::string VerdictAnnotations(const Verdict& verdict) {
  std::string text;
  if (verdict.run_status != ExitStatus::kDone) {
    text += WorkflowCommand("error", "evald: the run is incomplete", Join(verdict.problems, "; "));
  }
  for (const GateResult& result : verdict.gates) {
    if (result.outcome == Outcome::kPass) continue;
    const char* level = result.blocks()                       ? "error"
                        : result.gate.tier == Tier::kAdvisory ? "notice"
                                                              : "warning";
    text += WorkflowCommand(
        level, fmt::format("evald gate {}: {}", ToString(result.outcome), result.gate.name),
        result.cause);
  }
  return text + WorkflowCommand("notice", "evald: " + StatusWord(verdict.status), Summary(verdict));
}

}  // namespace evald
