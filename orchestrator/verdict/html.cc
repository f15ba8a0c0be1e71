#include <fmt/format.h>

#include "base/text.h"
#include "orchestrator/verdict/reports.h"

namespace evald {
namespace {

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --text: #1c2024; --faint: #5a636b; --ground: #ffffff; --line: #d5dadf; --panel: #f4f6f8;
  --pass: #17713b; --fail: #b3261e; --open: #8a5300; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e9ec; --faint: #a3adb6; --ground: #14171a; --line: #363d44;
  --panel: #1d2226; --pass: #6fd398; --fail: #ff9d94; --open: #f3bd6b; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 70rem; padding: 1rem; color: var(--text); background: var(--ground);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
.faint { color: var(--faint); } .pass { color: var(--pass); } .fail, .error { color: var(--fail); }
.inconclusive, .incomplete, .not-scored { color: var(--open); }
.outcome { font-weight: 600; white-space: nowrap; }
.scroll { overflow-x: auto; } .scroll:focus-visible { outline: 2px solid currentColor; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; overflow-wrap: normal; }
caption { text-align: left; color: var(--faint); padding-bottom: .25rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line); }
th { font-weight: 600; } td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.cause { min-width: 16rem; }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .5rem 0; padding: .4rem .75rem; background: var(--panel); }
summary { cursor: pointer; } dt { color: var(--faint); font-size: .85rem; margin-top: .5rem; } dd { margin: 0; }
pre { margin: .15rem 0; white-space: pre-wrap; font-size: .85rem; }
)";

// Escapes text for HTML. Characters that change the direction of writing are spelled out
// (Printable), so that no name can look like another one.
std::string Html(const std::string& text) {
  std::string escaped;
  for (const char c : ReplaceInvalidUtf8(text)) {
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
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        // Only characters that HTML does not allow are replaced.
        escaped += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return Printable(escaped);
}

std::string Class(std::string word) {
  for (char& c : word) c = c == ' ' ? '-' : c;
  return word;
}

struct Column {
  const char* name;
  bool number = false;
};

class TableWriter {
 public:
  TableWriter(const std::string& caption, const std::vector<Column>& columns) : columns_(columns) {
    text_ = fmt::format(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
        "aria-label=\"{0}\"><table><caption>{0}</caption>\n<thead><tr>",
        Html(caption));
    for (const Column& column : columns_) {
      text_ += fmt::format("<th scope=\"col\"{}>{}</th>", column.number ? " class=\"number\"" : "",
                           Html(column.name));
    }
    text_ += "</tr></thead>\n<tbody>\n";
  }
  // Adds a row. Cells are HTML; the first is the row's header.
  void Row(const std::vector<std::string>& cells) {
    text_ += "<tr>";
    for (size_t i = 0; i < cells.size(); ++i) {
      const char* kind = columns_[i].number                              ? " class=\"number\""
                         : std::string_view(columns_[i].name) == "Cause" ? " class=\"cause\""
                                                                         : "";
      text_ += i == 0 ? fmt::format("<th scope=\"row\">{}</th>", cells[i])
                      : fmt::format("<td{}>{}</td>", kind, cells[i]);
    }
    text_ += "</tr>\n";
  }
  std::string Finish() { return text_ + "</tbody></table></div>\n"; }

 private:
  std::vector<Column> columns_;
  std::string text_;
};

std::string Gates(const Verdict& verdict) {
  if (verdict.gates.empty()) return "";
  TableWriter table(
      "Every gate and what became of it",
      {{"Gate"}, {"Tier"}, {"Outcome"}, {"Value", true}, {"Baseline", true}, {"Cause"}});
  for (const GateResult& result : verdict.gates) {
    const std::string outcome = ToString(result.outcome);
    table.Row({Html(result.gate.name), ToString(result.gate.tier),
               fmt::format("<span class=\"outcome {}\">{}</span>", Class(outcome), outcome),
               result.candidate ? Shown(*result.candidate) : "",
               result.baseline ? Shown(*result.baseline) : "", Html(result.cause)});
  }
  return "<h2>Gates</h2>\n" + table.Finish();
}

std::string ComparisonsHtml(const Verdict& verdict) {
  if (verdict.comparisons.empty()) return "";
  TableWriter table("The same documents compared in pairs", {{"Task"},
                                                             {"Metric"},
                                                             {"Candidate", true},
                                                             {"Baseline", true},
                                                             {"Difference", true},
                                                             {"95 % interval"},
                                                             {"p", true},
                                                             {"Pairs", true},
                                                             {"Lost", true},
                                                             {"Gained", true}});
  for (const Comparison& comparison : verdict.comparisons) {
    const Json json = ToJson(comparison);
    table.Row({Html(comparison.key.task),
               Html(MetricKey{"", comparison.key.metric, comparison.key.filter}.Text()),
               Shown(comparison.candidate), Shown(comparison.baseline),
               json.contains("difference") ? Shown(json["difference"].get<double>()) : "",
               json.contains("interval") ? ShownInterval(json) : Html(comparison.why_none),
               json.contains("p") ? fmt::format("{:.3g}", json["p"].get<double>()) : "",
               std::to_string(comparison.pairs),
               comparison.right_or_wrong ? std::to_string(comparison.lost) : "",
               comparison.right_or_wrong ? std::to_string(comparison.gained) : ""});
  }
  return "<h2>Against the baseline</h2>\n" + table.Finish();
}

std::string Results(const Json& results) {
  TableWriter table("Aggregated values", {{"Task"},
                                          {"Metric"},
                                          {"Filter"},
                                          {"Value", true},
                                          {"Standard error", true},
                                          {"Documents", true},
                                          {"Truncated answers", true}});
  for (const ResultRow& row : ResultRows(results)) {
    table.Row({Html(row.task), Html(row.metric), Html(row.filter), Shown(row.value), row.error,
               row.documents, row.truncated});
  }
  return "<h2>Results</h2>\n" + table.Finish();
}

// The judges of tasks and what their answers took (evald.judge of the results).
std::string Judges(const Json& results) {
  const Json facts = results.is_object() ? results.value("evald", Json()) : Json();
  const Json judges = facts.is_object() ? facts.value("judge", Json()) : Json();
  if (!judges.is_object() || judges.empty()) return "";
  TableWriter table("What the judges' answers took", {{"Task"},
                                                      {"Judge"},
                                                      {"Answers", true},
                                                      {"Tokens in", true},
                                                      {"Tokens out", true},
                                                      {"Kept from before", true},
                                                      {"Not parsed", true}});
  for (const auto& [task, judge] : judges.items()) {
    if (!judge.is_object()) continue;
    const Json model = judge.value("model", Json());
    std::vector<std::string> cells = {Html(task),
                                      model.is_string() ? Html(model.get<std::string>()) : ""};
    for (const char* key : {"requests", "tokens_in", "tokens_out", "cached", "unparsed"}) {
      const Json count = judge.value(key, Json());
      cells.push_back(count.is_number_integer() ? count.dump() : "");
    }
    table.Row(cells);
  }
  return "<h2>Judges</h2>\n" + table.Finish();
}

std::string Examples(const std::vector<Example>& examples) {
  if (examples.empty()) return "";
  std::string text = "<h2>Wrong answers</h2>\n";
  for (const Example& example : examples) {
    text += fmt::format("<details><summary>{}, document {}{}</summary>\n<dl>", Html(example.task),
                        example.doc_id, example.lost ? " (right for the baseline)" : "");
    const auto part = [&](const char* name, const std::string& value) {
      text += fmt::format("<dt>{}</dt><dd><pre>{}</pre></dd>", name, Html(value));
    };
    part("Prompt", example.prompt);
    part("Expected", example.target);
    part("Answer", example.answer);
    if (!example.baseline_answer.empty()) part("The baseline's answer", example.baseline_answer);
    text += "</dl></details>\n";
  }
  return text;
}

}  // namespace

std::string VerdictHtml(const Verdict& verdict, const Json& results,
                        const std::vector<Example>& examples) {
  const std::string word = StatusWord(verdict.status);
  std::string text = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n"
      "<title>evald: {}: {}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n<h1>Evaluation: "
      "<span class=\"{}\">{}</span></h1>\n"
      "<p>{}</p>\n<p class=\"faint\">Candidate: {}",
      word, Html(verdict.candidate), kStyle, word, word, Html(Summary(verdict)),
      Html(verdict.candidate));
  if (!verdict.baseline.empty()) text += fmt::format("<br>Baseline: {}", Html(verdict.baseline));
  text += "</p>\n";
  if (!verdict.problems.empty()) {
    text += "<h2>Problems</h2>\n<ul>";
    for (const std::string& problem : verdict.problems)
      text += fmt::format("<li>{}</li>", Html(problem));
    text += "</ul>\n";
  }
  return text + Gates(verdict) + ComparisonsHtml(verdict) + Results(results) + Judges(results) +
         Examples(examples) + "</main>\n</body>\n</html>\n";
}

}  // namespace evald
