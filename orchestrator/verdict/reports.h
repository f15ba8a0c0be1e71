#pragma once

#include <string>

#include "evald/json.h"
#include "orchestrator/verdict/verdict.h"

namespace evald {

// Renderings of one verdict. Each depends on its arguments alone, and all say the same: a gate's
// outcome, and whether it blocks (critical and not met).

/// The form of VerdictText.
struct VerdictForm {
  size_t columns = 0;  ///< of the terminal; 0: tables are as wide as they are
  /// Group -> tasks and groups in it. Members of a group that is compared are left out.
  Json folded = Json::object();
};
/// For a terminal: one line per gate, then the causes of gates that are not met. With a baseline,
/// the table of comparisons comes first.
std::string VerdictText(const Verdict& verdict, const VerdictForm& form = {});

/// JUnit XML: one test case for the run and one per gate. A blocking gate is a failure (failed) or
/// an error (inconclusive, not scored, incomplete run). A gate that is not met and does not block
/// is skipped, with its cause.
std::string VerdictJunit(const Verdict& verdict);

/// Markdown for a CI step summary. `results` is the document of results.json.
std::string VerdictMarkdown(const Verdict& verdict, const Json& results);

/// Workflow commands of GitHub Actions, one a line: errors for blocking gates, warnings for
/// supporting gates, notices for other gates that are not met, and one notice that sums up.
std::string VerdictAnnotations(const Verdict& verdict);

/// A model's answer, for the page.
struct Example {
  std::string task;
  int64_t doc_id = 0;
  std::string prompt, target, answer;
  std::string baseline_answer;  ///< "" without a baseline
  bool lost = false;            ///< right for the baseline and wrong now; otherwise only wrong now
};

/// One self-contained HTML page without scripts. Everything that comes from a model or a file is
/// text in it.
std::string VerdictHtml(const Verdict& verdict, const Json& results,
                        const std::vector<Example>& examples);

/// A row of the results: a task's or group's metric.
struct ResultRow {
  std::string task, metric, filter;
  double value = 0;
  std::string error;      ///< "± 0.0125", or ""
  std::string documents;  ///< "80", or ""
  std::string truncated;  ///< truncated answers: "2 of 80"; "" for a task without texts
};
/// The rows of results.json, in its order.
std::vector<ResultRow> ResultRows(const Json& results);

/// Numbers for people: four decimals, six significant digits for large ones.
std::string Shown(double value);
/// "-0.0213 to 0.0405"; "" if there is no interval.
std::string ShownInterval(const Json& comparison);

}  // namespace evald
