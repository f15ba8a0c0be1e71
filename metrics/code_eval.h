#pragma once

#include <string>
#include <vector>

#include "evald/json.h"
#include "metrics/sandbox/sandbox.h"

namespace evald {

/// How one document's programs ended.
struct CodeEval {
  int64_t total = 0;
  int64_t passed = 0;
  Json detail = Json::array();  ///< one {"status", "detail"} a program, in order
};

/// Runs each candidate, a newline and `test` as one program, as the code_eval metric of Hugging
/// Face evaluate does.
CodeEval RunCandidates(CodeRunner* runner, const std::vector<std::string>& candidates,
                       const std::string& test);

/// The unbiased estimator of pass@k from n samples of which c pass: 1 - C(n-c, k) / C(n, k), in the
/// order of operations of code_eval (Chen et al. 2021, "Evaluating Large Language Models Trained on
/// Code", section 2.1).
double PassAtK(int64_t n, int64_t c, int64_t k);

}  // namespace evald
