#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "evald/json.h"

// process_results of lm_eval's tasks, built in. task_results.cc has the table of all.
namespace evald {

/// A function, as the file of its family describes it.
struct TaskResults {
  const char* function;  ///< "drop/utils.process_results" (datasets/known_modules.h)
  /// The metrics of a document. `results` are the filtered responses of its requests: texts, pairs
  /// [log-likelihood, is greedy] or log-likelihoods, numbers as in scores files. Throws AnswerError
  /// for an answer that cannot be scored, and Error(kInput) if Python raises for the document.
  Json (*score)(const Json& doc, const std::vector<Json>& results);
};

/// Null for a function that is not built in.
const TaskResults* FindTaskResults(std::string_view function);

std::vector<std::string> TaskResultsNames();

// For files of functions.

/// The one text among the responses.
const std::string& TextResult(const std::vector<Json>& results);

/// The log-likelihoods of pairs.
std::vector<double> LikelihoodsOf(const std::vector<Json>& results);

}  // namespace evald
