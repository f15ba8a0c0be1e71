#pragma once

#include <functional>
#include <string>
#include <vector>

#include "evald/json.h"

namespace evald {

/// The C++ implementations of the `!function`s that a task's documents need, under their names in
/// lm_eval/tasks: "<folder>/<module>.<name>" (datasets/known_modules.h says when a task's function
/// has this name). (Functions of metrics and filters are only named in the TaskDefinition; the
/// scorer resolves them.)

/// A list of few-shot documents (fewshot_config.samples). Throws Error(kInput) "<where>: ..." for a
/// name that is not known, with the known ones.
std::vector<Json> FewshotSamples(const std::string& name, const std::string& where);

/// A change of a whole split (process_docs). Throws as above.
std::vector<Json> ProcessDocs(const std::string& name, std::vector<Json> docs,
                              const std::string& where);

/// What a document gives for doc_to_text, doc_to_target or doc_to_choice. Throws as above.
Json DocFunction(const std::string& name, const Json& doc, const std::string& where);

/// Throws as the function itself would when `name` is not known.
void CheckSamplesFunction(const std::string& name, const std::string& where);
void CheckProcessDocsFunction(const std::string& name, const std::string& where);
void CheckDocFunction(const std::string& name, const std::string& where);

}  // namespace evald
