// The elements of JUnit's report that CI systems read: https://github.com/testmoapp/junitxml
#include <fmt/format.h>

#include "base/text.h"
#include "orchestrator/verdict/reports.h"

namespace evald {
namespace {

// Text for XML 1.0: escapes its five entities, and puts '?' for control characters that it cannot
// hold.
std::string Xml(const std::string& text) {
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
        escaped += "&apos;";
        break;
      case '\n':
        escaped += "&#10;";
        break;
      case '\t':
        escaped += "&#9;";
        break;
      default:
        escaped += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return Printable(escaped);
}

struct Case {
  std::string classname, name, element, type, message;  // no element: the case passed
};

Case CaseOf(const GateResult& result) {
  Case test{fmt::format("evald.{}.{}", ToString(result.gate.tier), result.key.task),
            result.gate.name, "", "", result.cause};
  if (result.outcome == Outcome::kPass) return test;
  test.type = ToString(result.outcome);
  test.element = !result.blocks()                   ? "skipped"
                 : result.outcome == Outcome::kFail ? "failure"
                                                    : "error";
  if (test.element == "skipped") {
    test.message = fmt::format("{}, but {} gates do not block: {}", test.type,
                               ToString(result.gate.tier), result.cause);
  }
  return test;
}

}  // namespace

std::string VerdictJunit(const Verdict& verdict) {
  std::vector<Case> cases = {{"evald.run", "the evaluation is complete", "", "", ""}};
  if (verdict.run_status != ExitStatus::kDone) {
    cases[0].element = "error";
    cases[0].type = StatusWord(verdict.run_status);
    cases[0].message = Join(verdict.problems, "; ");
  }
  for (const GateResult& result : verdict.gates) cases.push_back(CaseOf(result));
  int failures = 0, errors = 0, skipped = 0;
  std::string body;
  for (const Case& test : cases) {
    failures += test.element == "failure";
    errors += test.element == "error";
    skipped += test.element == "skipped";
    body += fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"0\"",
                        Xml(test.classname), Xml(test.name));
    if (test.element == "skipped") {
      body +=
          fmt::format(">\n      <skipped message=\"{}\"/>\n    </testcase>\n", Xml(test.message));
    } else if (!test.element.empty()) {
      body += fmt::format(">\n      <{0} type=\"{1}\" message=\"{2}\">{2}</{0}>\n    </testcase>\n",
                          test.element, Xml(test.type), Xml(test.message));
    } else if (!test.message.empty()) {
      body +=
          fmt::format(">\n      <system-out>{}</system-out>\n    </testcase>\n", Xml(test.message));
    } else {
      body += "/>\n";
    }
  }
  const std::string counts =
      fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"0\"",
                  cases.size(), failures, errors, skipped);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"evald\" {0}>\n"
      "  <testsuite name=\"{1}\" {0}>\n{2}  </testsuite>\n</testsuites>\n",
      counts, Xml("evald gates: " + verdict.candidate), body);
}

}  // namespace evald
