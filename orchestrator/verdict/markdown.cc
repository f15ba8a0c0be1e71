// GitHub-flavoured Markdown, which GitLab renders too.
#include <fmt/format.h>

#include "base/text.h"
#include "orchestrator/verdict/reports.h"

namespace evald {
namespace {

// Text in a table's cell: no markup, no line breaks, no cell borders.
std::string Md(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '|':
      case '*':
      case '_':
      case '`':
      case '[':
      case ']':
      case '\\':
      case '~':
      case '@':
      case '#':
        escaped += '\\';
        escaped += c;
        break;
      case '\n':
      case '\r':
        escaped += ' ';
        break;
      default:
        escaped += c;
    }
  }
  return Printable(escaped);
}

std::string Mark(Outcome outcome) {
  const char* mark = outcome == Outcome::kPass           ? "✅"
                     : outcome == Outcome::kFail         ? "❌"
                     : outcome == Outcome::kInconclusive ? "❔"
                                                         : "⛔";
  return fmt::format("{} {}", mark, ToString(outcome));
}

std::string Gates(const Verdict& verdict) {
  if (verdict.gates.empty()) return "";
  std::string text =
      "| Gate | Tier | Outcome | Value | Baseline | Cause |\n|---|---|---|--:|--:|---|\n";
  for (const GateResult& result : verdict.gates) {
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", Md(result.gate.name),
                        ToString(result.gate.tier), Mark(result.outcome),
                        result.candidate ? Shown(*result.candidate) : "",
                        result.baseline ? Shown(*result.baseline) : "", Md(result.cause));
  }
  return text + "\n";
}

std::string ComparisonsMarkdown(const Verdict& verdict) {
  if (verdict.comparisons.empty()) return "";
  std::string text =
      "### Against the baseline\n\n| Task | Metric | Candidate | Baseline | Difference | 95 % "
      "interval | p | Pairs "
      "| Lost | Gained |\n|---|---|--:|--:|--:|---|--:|--:|--:|--:|\n";
  for (const Comparison& comparison : verdict.comparisons) {
    const Json json = ToJson(comparison);
    text += fmt::format(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", Md(comparison.key.task),
        Md(MetricKey{"", comparison.key.metric, comparison.key.filter}.Text()),
        Shown(comparison.candidate), Shown(comparison.baseline),
        json.contains("difference") ? Shown(json["difference"].get<double>()) : "",
        json.contains("interval") ? ShownInterval(json) : Md(comparison.why_none),
        json.contains("p") ? fmt::format("{:.3g}", json["p"].get<double>()) : "", comparison.pairs,
        comparison.right_or_wrong ? std::to_string(comparison.lost) : "",
        comparison.right_or_wrong ? std::to_string(comparison.gained) : "");
  }
  return text + "\n";
}

}  // namespace

std::string VerdictMarkdown(const Verdict& verdict, const Json& results) {
  std::string text =
      fmt::format("## evald: {}\n\n{}\n\n", StatusWord(verdict.status), Md(Summary(verdict)));
  text += fmt::format("Candidate: {}\n", Md(verdict.candidate));
  if (!verdict.baseline.empty()) text += fmt::format("<br>Baseline: {}\n", Md(verdict.baseline));
  text += "\n" + Gates(verdict);
  for (const std::string& problem : verdict.problems) text += fmt::format("- {}\n", Md(problem));
  if (!verdict.problems.empty()) text += "\n";
  text += ComparisonsMarkdown(verdict);
  if (!verdict.undirected.empty()) {
    text += fmt::format("Not compared, as neither side says which value is better: {}\n\n",
                        Md(Join(verdict.undirected, ", ")));
  }
  text +=
      "### Results\n\n| Task | Metric | Filter | Value | Standard error | Documents "
      "|\n|---|---|---|--:|--:|--:|\n";
  for (const ResultRow& row : ResultRows(results)) {
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", Md(row.task), Md(row.metric),
                        Md(row.filter), Shown(row.value), row.error, row.documents);
  }
  return text;
}

}  // namespace evald
