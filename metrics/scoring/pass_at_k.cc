// pass_at_k of humaneval and pass_at_1 of mbpp: how many of a document's programs pass its test.
#include <fmt/format.h>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/scoring/answer_error.h"
#include "metrics/scoring/code_eval.h"
#include "metrics/scoring/metric.h"

namespace evald {
namespace {

std::vector<int64_t> ReadK(const MetricSpec& spec) {
  const auto found = spec.kwargs.find("k");
  if (found != spec.kwargs.end() && found->is_number_integer()) {
    return {Field<int64_t>(spec.kwargs, "k", "pass_at_k")};
  }
  return Field<std::vector<int64_t>>(spec.kwargs, "k", "pass_at_k");
}

std::string OneTest(const TextAnswer& answer) {
  if (answer.gold.is_string()) return answer.gold.get<std::string>();
  throw Error(ErrorKind::kInput, fmt::format("the target of a code task must be its test, found {}",
                                             Shortened(ToLine(answer.gold), 200)));
}

TextScorer MakePassAtK(const TaskDefinition&, const MetricSpec& spec, CodeRunner* runner) {
  const std::vector<int64_t> ks = ReadK(spec);
  for (const int64_t k : ks) {
    if (k < 1)
      throw Error(ErrorKind::kInput,
                  fmt::format("pass_at_k: found k = {}, expected at least 1", k));
  }
  return [ks, runner](const TextAnswer& answer, Json* metrics, Json* detail) {
    const CodeEval eval =
        RunCandidates(runner, TextsOf(answer.result, "pass_at_k"), OneTest(answer));
    for (const int64_t k : ks) {
      if (eval.total >= k)
        (*metrics)[fmt::format("pass@{}", k)] = PassAtK(eval.total, eval.passed, k);
    }
    *detail = eval.detail;
  };
}

TextScorer MakePassAt1(const TaskDefinition&, const MetricSpec&, CodeRunner* runner) {
  return [runner](const TextAnswer& answer, Json* metrics, Json* detail) {
    const CodeEval eval =
        RunCandidates(runner, TextsOf(answer.result, "pass_at_1"), OneTest(answer));
    if (eval.total < 1) throw AnswerError("no text", "pass_at_1: the filters leave no program");
    (*metrics)["pass_at_1"] = PassAtK(eval.total, eval.passed, 1);
    *detail = eval.detail;
  };
}

// No document has more programs than answers.
std::vector<std::string> PassNames(const TaskDefinition& task, const MetricSpec& spec) {
  std::vector<std::string> names;
  for (const int64_t k : ReadK(spec)) {
    if (k <= task.repeats) names.push_back(fmt::format("pass@{}", k));
  }
  return names;
}

}  // namespace

extern constinit const Metric kPassAtKMetric = {
    .name = "pass_at_k",
    .function = "humaneval/utils.pass_at_k",
    .text = TextRule{.runs_code = true,
                     .value_prefix = "pass@",
                     .value_names = PassNames,
                     .make = MakePassAtK},
};
extern constinit const Metric kPassAt1Metric = {
    .name = "pass_at_1",
    .function = "mbpp/utils.pass_at_1",
    .text = TextRule{.runs_code = true, .make = MakePassAt1},
};

}  // namespace evald
