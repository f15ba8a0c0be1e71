#include "metrics/scoring/code_eval.h"

#include <utility>

#include "evald/error.h"

namespace evald {
namespace {

// Of all programs of a document; further outputs are left out.
constexpr size_t kOutputsBytesMax = 64 << 10;

const char* StatusName(ProgramStatus status) {
  switch (status) {
    case ProgramStatus::kPassed:
      return "passed";
    case ProgramStatus::kFailed:
      return "failed";
    case ProgramStatus::kTimeout:
      return "timeout";
    case ProgramStatus::kKilled:
      return "killed";
  }
  throw Error(ErrorKind::kInternal, "a program status without a name");
}

}  // namespace

CodeEval JudgeCandidates(const std::vector<std::string>& candidates,
                         const std::function<ProgramOutcome(const std::string&)>& judge) {
  CodeEval result;
  size_t output_left = kOutputsBytesMax;
  for (const std::string& candidate : candidates) {
    const ProgramOutcome outcome = judge(candidate);
    ++result.total;
    if (outcome.status == ProgramStatus::kPassed) ++result.passed;
    // The program's time is left out: equal work must give equal bytes.
    Json account = {{"status", StatusName(outcome.status)}, {"detail", outcome.detail}};
    const bool shown = outcome.status != ProgramStatus::kPassed && !outcome.output.empty();
    if (shown && outcome.output.size() <= output_left) {
      output_left -= outcome.output.size();
      account["output"] = outcome.output;
    }
    result.detail.push_back(std::move(account));
  }
  return result;
}

CodeEval RunCandidates(CodeRunner* runner, const std::vector<std::string>& candidates,
                       const std::string& test) {
  if (runner == nullptr) {
    throw Error(ErrorKind::kInternal, "a metric runs code, but there is no sandbox to run it in");
  }
  return JudgeCandidates(candidates, [&](const std::string& candidate) {
    return runner->Run(candidate + "\n" + test);
  });
}

double PassAtK(int64_t n, int64_t c, int64_t k) {
  if (n - c < k) return 1.0;
  double product = 1.0;
  for (int64_t i = n - c + 1; i <= n; ++i) {
    product *= 1.0 - static_cast<double>(k) / static_cast<double>(i);
  }
  return 1.0 - product;
}

}  // namespace evald
