#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "datasets/documents.h"
#include "datasets/function_values.h"
#include "datasets/renderer.h"
#include "datasets/sampler.h"
#include "datasets/task_config.h"
#include "datasets/task_set.h"
#include "evald/request.h"
#include "prepared/prepared_task.h"

namespace evald {

/// One message of a prompt, and the text that follows it in plain text. A chat template gets only
/// the roles and contents (lm_eval/api/utils.py, Message).
struct PromptMessage {
  std::string role;  ///< system, user or assistant
  std::string content;
  std::string delimiter;
};

/// The documents from which examples are taken.
struct FewshotDocuments : Documents {
  FunctionValues* values = nullptr;  ///< of the task's Python functions; null: there are none
};

/// Makes documents into requests like ConfigurableTask (lm_eval/api/task.py, 0.4.13). Documents
/// must be built in their order, since few-shot examples are drawn at random. One thread at a time.
class PromptBuilder {
 public:
  /// `fewshot` are the documents from which examples are taken; empty if num_fewshot is 0. `first`
  /// is the first evaluated document, from which the shape of the task is read.
  PromptBuilder(const TaskConfig& config, const PromptOptions& options,
                const std::vector<std::string>& columns, FewshotDocuments fewshot, uint64_t seed,
                const DocRef& first);

  // The sampler refers to the builder's own documents.
  PromptBuilder(const PromptBuilder&) = delete;
  PromptBuilder& operator=(const PromptBuilder&) = delete;

  /// The document with its target and choices. Throws like Build.
  PreparedDocument Document(int64_t doc_id, const DocRef& doc) const;

  /// The document's target and choices, and its requests. Throws Error(kInput) that names the
  /// template and the fault; the caller adds the document's place.
  PreparedDocument Build(int64_t doc_id, const DocRef& doc, std::vector<Request>* requests);

  bool multiple_target() const { return multiple_target_; }
  bool multiple_input() const { return multiple_input_; }

 private:
  struct Turn;

  std::vector<PromptMessage> Messages(const DocRef& doc);
  /// The messages of a few-shot example, made once.
  const std::vector<PromptMessage>& Example(size_t at);
  void AddExample(const DocRef& example, std::vector<PromptMessage>* messages) const;
  void AddTurn(const Turn& turn, std::vector<PromptMessage>* messages) const;
  std::string SystemPrompt(const DocRef& doc) const;
  std::vector<std::string> Contexts(const DocRef& doc, const PreparedDocument& out);
  std::string Spell(std::vector<PromptMessage> messages, bool has_prefix) const;
  std::string ChoiceDelimiter() const;
  std::string AnswerText(const Json& answer, const std::vector<std::string>* choices) const;
  std::string Prefix(const DocField& field, const DocRef& doc) const;
  Json Label(const DocRef& doc) const;
  void CheckLabels(const PreparedDocument& document) const;
  std::vector<Request> MakeRequests(const std::vector<std::string>& contexts,
                                    const PreparedDocument& document) const;
  [[noreturn]] void Fail(const std::string& message) const;

  const TaskConfig& config_;
  const PromptOptions& options_;
  FewshotDocuments fewshot_;
  DocField text_;
  DocField target_;
  DocField choice_;
  DocField gen_prefix_;
  DocField description_;
  DocField fewshot_text_;
  DocField fewshot_target_;
  DocField fewshot_choice_;
  DocField fewshot_gen_prefix_;
  FewshotSampler sampler_;
  std::map<size_t, std::vector<PromptMessage>> examples_;
  bool excludes_self_ = false;
  bool multiple_target_ = false;
  bool multiple_input_ = false;
};

}  // namespace evald
