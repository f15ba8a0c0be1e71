// pass_at_k of humaneval and pass_at_1 of mbpp: how many of a document's programs pass its test.
// And `passes`, the same for programs in any language and tests of other forms (docs/metrics.md,
// "Programs").
#include <fmt/format.h>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/scoring/answer_error.h"
#include "metrics/scoring/code_eval.h"
#include "metrics/scoring/metric.h"
#include "metrics/scoring/program_rule.h"
#include "metrics/scoring/program_tests.h"

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

/// The programs of an answer, by humaneval's and mbpp's rule: the target is the test. `language` of
/// the metric names another language than Python.
CodeEval Evaluate(const ProgramRule& rule, CodeRunner* runner, const TextAnswer& answer,
                  const char* metric) {
  const std::vector<std::string> programs = TextsOf(answer.result, metric);
  if (rule.language == "python") return RunCandidates(runner, programs, OneTest(answer));
  return JudgeCandidates(programs, [&](const std::string& program) {
    return TestProgram(runner, rule, *answer.document, OneTest(answer), program);
  });
}

TextScorer MakePassAtK(const TaskDefinition&, const MetricSpec& spec, CodeRunner* runner) {
  const std::vector<int64_t> ks = ReadK(spec);
  const ProgramRule rule = ReadProgramRule(spec);
  for (const int64_t k : ks) {
    if (k < 1)
      throw Error(ErrorKind::kInput,
                  fmt::format("pass_at_k: found k = {}, expected at least 1", k));
  }
  return [ks, rule, runner](const TextAnswer& answer, Json* metrics, Json* detail) {
    const CodeEval eval = Evaluate(rule, runner, answer, "pass_at_k");
    for (const int64_t k : ks) {
      if (eval.total >= k)
        (*metrics)[fmt::format("pass@{}", k)] = PassAtK(eval.total, eval.passed, k);
    }
    *detail = eval.detail;
  };
}

TextScorer MakePassAt1(const TaskDefinition&, const MetricSpec& spec, CodeRunner* runner) {
  return [rule = ReadProgramRule(spec), runner](const TextAnswer& answer, Json* metrics,
                                                Json* detail) {
    const CodeEval eval = Evaluate(rule, runner, answer, "pass_at_1");
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

TextScorer MakePasses(const TaskDefinition& task, const MetricSpec& spec, CodeRunner* runner) {
  const ProgramRule rule = ReadProgramRule(spec);
  if (!task.unsafe_code) {
    throw Error(
        ErrorKind::kInput,
        "the metric 'passes' runs the programs that the model writes, and the task does not "
        "say so",
        "write 'unsafe_code: true' into the task's file");
  }
  return [rule, runner](const TextAnswer& answer, Json* metrics, Json* detail) {
    const std::string target = rule.cases.empty() ? OneTest(answer) : "";
    const CodeEval eval =
        JudgeCandidates(TextsOf(answer.result, "passes"), [&](const std::string& program) {
          if (runner == nullptr)
            throw Error(ErrorKind::kInternal, "there is no sandbox for the metric 'passes'");
          return TestProgram(runner, rule, *answer.document, target, program);
        });
    if (eval.total < 1) throw AnswerError("no text", "passes: the filters leave no program");
    if (rule.ks.empty()) (*metrics)["passes"] = PassAtK(eval.total, eval.passed, 1);
    for (const int64_t k : rule.ks) {
      if (eval.total >= k)
        (*metrics)[fmt::format("pass@{}", k)] = PassAtK(eval.total, eval.passed, k);
    }
    *detail = eval.detail;
  };
}

std::vector<std::string> PassesNames(const TaskDefinition& task, const MetricSpec& spec) {
  const std::vector<int64_t> ks = ReadProgramRule(spec).ks;
  if (ks.empty()) return {"passes"};
  std::vector<std::string> names;
  for (const int64_t k : ks) {
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
extern constinit const Metric kPassesMetric = {
    .name = "passes",
    .aggregation = "mean",
    .text = TextRule{.runs_code = true,
                     .check =
                         [](const MetricSpec& spec, const PreparedDocument& document) {
                           CheckProgramDocument(ReadProgramRule(spec), document);
                         },
                     .value_prefix = "pass@",
                     .value_names = PassesNames,
                     .make = MakePasses},
};

}  // namespace evald
