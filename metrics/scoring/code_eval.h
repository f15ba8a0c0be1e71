#pragma once

#include <functional>
#include <string>
#include <vector>

#include "evald/json.h"
#include "metrics/sandbox/sandbox.h"

namespace evald {

/// The outcome of one document's programs.
struct CodeEval {
  int64_t total = 0;
  int64_t passed = 0;
  /// One {"status", "detail"} per program, in order. With "output" if the program did not pass and
  /// had printed something.
  Json detail = Json::array();
};

/// Has each candidate judged, in order.
CodeEval JudgeCandidates(const std::vector<std::string>& candidates,
                         const std::function<ProgramOutcome(const std::string&)>& judge);

/// Runs each candidate, a newline and `test` as one program, like the code_eval metric of Hugging
/// Face evaluate.
CodeEval RunCandidates(CodeRunner* runner, const std::vector<std::string>& candidates,
                       const std::string& test);

/// The unbiased estimator of pass@k from n samples of which c pass: 1 - C(n-c, k) / C(n, k), in
/// code_eval's order of operations (Chen et al. 2021, "Evaluating Large Language Models Trained on
/// Code", section 2.1).
double PassAtK(int64_t n, int64_t c, int64_t k);

}  // namespace evald
