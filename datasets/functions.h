#pragma once

#include <string>
#include <vector>

#include "datasets/document_functions.h"
#include "datasets/documents.h"
#include "evald/json.h"

namespace evald {

/// C++ implementations of the `!function`s that a task's documents need, under their names in
/// lm_eval/tasks: "<folder>/<module>.<name>" (datasets/known_modules.h says when a task's function
/// has this name). Functions of metrics and filters are only named in the TaskDefinition, and so is
/// process_results (metrics/scoring/task_results.h); the scorer resolves them.

/// A list of few-shot documents (fewshot_config.samples). Throws Error(kInput) "<where>: ..." for
/// an unknown name, with the known ones.
std::vector<Json> FewshotSamples(const std::string& name, const std::string& where);

/// A change of a whole split (process_docs). Throws like FewshotSamples, and Error(kInput) that
/// names the function and the row if Python would raise, or if no document is left.
void ProcessDocs(const std::string& name, Documents* documents, FunctionRandom* random,
                 const std::string& where);

/// The value of doc_to_text, doc_to_target or doc_to_choice for a document. Throws like
/// ProcessDocs.
Json DocFunction(const std::string& name, const Json& doc, const std::string& where);

/// Whether evald has implemented the function of this name.
bool IsBuiltinSamplesFunction(const std::string& name);
bool IsBuiltinProcessDocs(const std::string& name);
bool IsBuiltinDocFunction(const std::string& name);

/// Throws Error(kInput) for a function that is not built in, and names those that are.
[[noreturn]] void RefuseTaskFunction(const std::string& name, const std::string& where);

}  // namespace evald
