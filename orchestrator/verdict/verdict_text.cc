#include <fmt/format.h>

#include <set>

#include "base/text.h"
#include "orchestrator/report/text_table.h"
#include "orchestrator/verdict/reports.h"

namespace evald {
namespace {

// Notes, a line each, in lines that fit.
std::string Fitting(const std::string& notes, size_t columns) {
  if (columns == 0) return notes;
  std::string text;
  for (const std::string& note : Split(notes, '\n')) {
    for (const std::string& line : Wrapped(note, columns, 2, true)) text += line + "\n";
  }
  if (!text.empty()) text.pop_back();  // that of the empty part after the last line feed
  return text;
}

void AddMembers(const Json& groups, const std::string& group, std::set<std::string>* members) {
  const auto found = groups.find(group);
  if (found == groups.end() || !found->is_array()) return;
  for (const Json& child : *found) {
    if (child.is_string() && members->insert(child.get<std::string>()).second)
      AddMembers(groups, child.get<std::string>(), members);
  }
}

// The tasks for which a group stands.
std::set<std::string> FoldedTasks(const Verdict& verdict, const Json& groups) {
  std::set<std::string> folded;
  for (const Comparison& comparison : verdict.comparisons)
    AddMembers(groups, comparison.key.task, &folded);
  return folded;
}

std::string ComparisonsText(const Verdict& verdict, const VerdictForm& form) {
  const std::set<std::string> folded = FoldedTasks(verdict, form.folded);
  std::set<std::string> left_out;
  std::vector<TextRow> rows = {{"Task", "Metric", "Candidate", "Baseline", "Difference",
                                "95 % interval", "p", "Pairs", "Lost", "Gained"}};
  std::string notes;
  for (const Comparison& comparison : verdict.comparisons) {
    if (folded.contains(comparison.key.task)) {
      left_out.insert(comparison.key.task);
      continue;
    }
    const Json json = ToJson(comparison);
    const std::string metric =
        std::string(Trim(MetricKey{"", comparison.key.metric, comparison.key.filter}.Text()));
    rows.push_back({comparison.key.task, metric, Shown(comparison.candidate),
                    Shown(comparison.baseline),
                    json.contains("difference") ? Shown(json["difference"].get<double>()) : "",
                    ShownInterval(json),
                    json.contains("p") ? fmt::format("{:.3g}", json["p"].get<double>()) : "",
                    std::to_string(comparison.pairs),
                    comparison.right_or_wrong ? std::to_string(comparison.lost) : "",
                    comparison.right_or_wrong ? std::to_string(comparison.gained) : ""});
    if (!comparison.evidence)
      notes += fmt::format("{}: not compared: {}\n", comparison.key.Text(), comparison.why_none);
    if (comparison.other_prompts > 0) {
      notes += fmt::format("{}: {} of {} pairs had other prompts\n", comparison.key.Text(),
                           comparison.other_prompts, comparison.pairs);
    }
    if (comparison.only_candidate + comparison.only_baseline > 0) {
      notes +=
          fmt::format("{}: {} documents of the candidate and {} of the baseline have no pair\n",
                      comparison.key.Text(), comparison.only_candidate, comparison.only_baseline);
    }
  }
  if (!left_out.empty())
    notes += fmt::format("{} tasks and groups within these groups: --all\n", left_out.size());
  return TextTable(rows, {.right = {false, false, true, true, true, false, true, true, true, true},
                          .columns = form.columns,
                          .lead = 2}) +
         Fitting(notes, form.columns) + "\n";
}

}  // namespace

std::string VerdictText(const Verdict& verdict, const VerdictForm& form) {
  std::string text;
  if (!verdict.comparisons.empty()) text += ComparisonsText(verdict, form);
  for (const std::string& metric : verdict.undirected) {
    text += Fitting(fmt::format("{}: not compared: higher_is_better of neither side says which "
                                "value is better\n",
                                metric),
                    form.columns);
  }
  if (!verdict.other_versions.empty())
    text += fmt::format("other versions of tasks: {}\n", Join(verdict.other_versions, ", "));
  if (verdict.gates.empty()) return text;
  std::vector<TextRow> rows = {{"Gate", "Tier", "Value", "Baseline", "Outcome"}};
  std::string causes;
  for (const GateResult& result : verdict.gates) {
    rows.push_back({result.gate.name, ToString(result.gate.tier),
                    result.candidate ? Shown(*result.candidate) : "",
                    result.baseline ? Shown(*result.baseline) : "", ToString(result.outcome)});
    if (result.outcome != Outcome::kPass)
      causes +=
          fmt::format("{}: {}: {}\n", ToString(result.outcome), result.gate.name, result.cause);
  }
  text += TextTable(rows, {.right = {false, false, true, true, false}, .columns = form.columns});
  return text + (causes.empty() ? "" : "\n" + Fitting(causes, form.columns)) +
         Fitting(fmt::format("\nverdict: {}; {}\n", StatusWord(verdict.status), Summary(verdict)),
                 form.columns);
}

}  // namespace evald
