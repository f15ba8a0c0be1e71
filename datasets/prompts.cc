#include "datasets/prompts.h"

#include <fmt/format.h>

#include <algorithm>

#include "evald/error.h"
#include "metrics/scoring/metrics.h"
#include "python/moment.h"
#include "python/str.h"
#include "python/value.h"

namespace evald {
namespace {

// maybe_delimit of lm_eval/api/utils.py: puts a delimiter between the texts, unless there is white
// space already.
std::string Delimited(const std::string& prefix, const std::string& suffix,
                      const std::string& delimiter) {
  if (prefix.empty() || suffix.empty()) return prefix + suffix;
  const bool spaced = python::EndsWithSpace(prefix) || python::StartsWithSpace(suffix);
  return prefix + (spaced ? "" : delimiter) + suffix;
}

std::string JoinMessages(const std::vector<PromptMessage>& messages) {
  std::string text;
  for (const PromptMessage& message : messages) text += message.content + message.delimiter;
  return text;
}

// multiturn_to_singleturn of lm_eval/api/utils.py: joins the user's texts and the examples into one
// message of the user. The system's message and a final one of the assistant stay apart.
std::vector<PromptMessage> AsOneTurn(std::vector<PromptMessage> messages) {
  std::vector<PromptMessage> out;
  size_t begin = 0;
  size_t end = messages.size();
  if (messages.front().role == "system") out.push_back(messages[begin++]);
  if (messages.back().role == "assistant") --end;
  messages[end - 1].delimiter.clear();
  PromptMessage user{"user", "", ""};
  for (size_t i = begin; i < end; ++i) user.content += messages[i].content + messages[i].delimiter;
  out.push_back(std::move(user));
  if (end < messages.size()) out.push_back(std::move(messages[end]));
  return out;
}

bool IsLabel(const Json& value) { return value.is_number_integer() || value.is_boolean(); }

int64_t LabelOf(const Json& value) {
  return value.is_boolean() ? static_cast<int64_t>(value.get<bool>()) : value.get<int64_t>();
}

}  // namespace

struct PromptBuilder::Turn {
  std::string question;
  const Json* answer = nullptr;
  const std::vector<std::string>* choices = nullptr;
  std::string gen_prefix;
  std::string target_delimiter;
  std::string fewshot_delimiter;
};

PromptBuilder::PromptBuilder(const TaskConfig& config, const PromptOptions& options,
                             const std::vector<std::string>& columns, FewshotDocuments fewshot,
                             uint64_t seed, const DocRef& first)
    : config_(config),
      options_(options),
      fewshot_(std::move(fewshot)),
      text_(config.doc_to_text, {columns.begin(), columns.end()}, "doc_to_text", config.where),
      target_(config.doc_to_target, {columns.begin(), columns.end()}, "doc_to_target",
              config.where),
      choice_(config.doc_to_choice, {columns.begin(), columns.end()}, "doc_to_choice",
              config.where),
      gen_prefix_(config.gen_prefix, {columns.begin(), columns.end()}, "gen_prefix", config.where),
      description_(config.description, {columns.begin(), columns.end()}, "description",
                   config.where),
      fewshot_text_(config.fewshot.doc_to_text, {columns.begin(), columns.end()},
                    "fewshot_config.doc_to_text", config.where),
      fewshot_target_(config.fewshot.doc_to_target, {columns.begin(), columns.end()},
                      "fewshot_config.doc_to_target", config.where),
      fewshot_choice_(config.fewshot.doc_to_choice, {columns.begin(), columns.end()},
                      "fewshot_config.doc_to_choice", config.where),
      fewshot_gen_prefix_(config.fewshot.gen_prefix,
                          {fewshot_.columns.begin(), fewshot_.columns.end()},
                          "fewshot_config.gen_prefix", config.where),
      sampler_(config.fewshot.sampler, fewshot_.rows, static_cast<int64_t>(seed), config.where) {
  const Json test_split = config.test_split.empty() ? Json() : Json(config.test_split);
  excludes_self_ = config.fewshot.split == test_split;
  const bool has_choices = !choice_.IsNull();
  multiple_target_ = target_.Target(first, has_choices).is_array();
  multiple_input_ =
      has_choices && IsLabel(text_.Text(first, true)) && !choice_.Choices(first).empty();
}

void PromptBuilder::Fail(const std::string& message) const {
  throw Error(ErrorKind::kInput, fmt::format("the task at {}: {}", config_.where, message));
}

std::string PromptBuilder::Prefix(const DocField& field, const DocRef& doc) const {
  if (field.IsNull()) return "";
  const Json value = field.Raw(doc);
  if (!value.is_string()) Fail("gen_prefix is not text");
  return value.get<std::string>();
}

std::string PromptBuilder::AnswerText(const Json& answer,
                                      const std::vector<std::string>* choices) const {
  if (choices != nullptr && !choices->empty() && IsLabel(answer)) {
    const auto size = static_cast<int64_t>(choices->size());
    const int64_t at = LabelOf(answer) < 0 ? LabelOf(answer) + size : LabelOf(answer);
    if (at < 0 || at >= size) {
      Fail(fmt::format("the target {} is no index of the {} choices", LabelOf(answer), size));
    }
    return (*choices)[static_cast<size_t>(at)];
  }
  if (answer.is_array() && answer.empty()) Fail("the target is an empty list");
  const Json& text = answer.is_array() ? answer[0] : answer;
  if (!text.is_string()) {
    Fail(fmt::format("the target {} of a few-shot example is not text", PythonRepr(text)));
  }
  return text.get<std::string>();
}

// ConfigurableTask.build_qa_turn.
void PromptBuilder::AddTurn(const Turn& turn, std::vector<PromptMessage>* messages) const {
  const bool has_answer = turn.answer != nullptr && !turn.answer->is_null() && *turn.answer != "";
  const std::string& prefix = turn.gen_prefix;
  const bool touches_prefix = !prefix.empty() && !turn.question.empty() &&
                              !python::EndsWithSpace(turn.question) &&
                              !python::StartsWithSpace(prefix);
  const bool delimits = prefix.empty() ? has_answer : touches_prefix;
  messages->push_back({"user", turn.question, delimits ? turn.target_delimiter : ""});
  if (has_answer) {
    messages->push_back({"assistant",
                         Delimited(prefix, AnswerText(*turn.answer, turn.choices), " "),
                         turn.fewshot_delimiter});
  } else if (!prefix.empty()) {
    messages->push_back({"assistant", prefix, ""});
  }
}

void PromptBuilder::AddExample(const DocRef& example, std::vector<PromptMessage>* messages) const {
  const bool has_choices = !choice_.IsNull();
  // Empty members of fewshot_config fall back to the task's own.
  const DocField& text = fewshot_text_.IsNull() ? text_ : fewshot_text_;
  const DocField& target = fewshot_target_.IsNull() ? target_ : fewshot_target_;
  const Json question = text.Text(example, has_choices);
  std::vector<std::string> choices;
  if (!fewshot_choice_.IsNull()) choices = fewshot_choice_.Choices(example);
  const Json answer = target.Target(example, has_choices);
  Turn turn;
  turn.answer = &answer;
  turn.choices = choices.empty() || multiple_input_ ? nullptr : &choices;
  turn.gen_prefix = Prefix(fewshot_gen_prefix_, example);
  turn.target_delimiter = config_.fewshot.target_delimiter;
  turn.fewshot_delimiter = config_.fewshot.fewshot_delimiter;
  if (multiple_input_) {
    if (!IsLabel(question))
      Fail("doc_to_text of a few-shot example is not an index of the choices");
    turn.question = AnswerText(question, &choices);
  } else if (question.is_string()) {
    turn.question = question.get<std::string>();
  } else {
    Fail("doc_to_text of a few-shot example is not text");
  }
  AddTurn(turn, messages);
}

const std::vector<PromptMessage>& PromptBuilder::Example(size_t at) {
  const auto found = examples_.find(at);
  if (found != examples_.end()) return found->second;
  std::vector<PromptMessage> messages;
  try {
    AddExample({fewshot_.rows[at], fewshot_.values, static_cast<int64_t>(at)}, &messages);
  } catch (Error& error) {
    error.AddContext("few-shot example " + fewshot_.where[at]);
    throw;
  }
  return examples_.emplace(at, std::move(messages)).first->second;
}

// The system instruction and the task's description.
std::string PromptBuilder::SystemPrompt(const DocRef& doc) const {
  if (config_.description.empty()) return options_.system_instruction;
  const auto found = doc.row.find(config_.description);
  const Json description = found != doc.row.end() ? *found : description_.Raw(doc);
  if (!description.is_string()) Fail("the description is not text");
  return Delimited(options_.system_instruction, description.get<std::string>(),
                   config_.fewshot_delimiter);
}

// The messages before the document: the system's message and the few-shot examples.
std::vector<PromptMessage> PromptBuilder::Messages(const DocRef& doc) {
  std::vector<PromptMessage> messages;
  const std::string system = SystemPrompt(doc);
  if (!system.empty()) messages.push_back({"system", system, ""});
  const auto count = static_cast<size_t>(config_.num_fewshot);
  for (size_t at : sampler_.Sample(count, excludes_self_ ? &doc.row : nullptr)) {
    const std::vector<PromptMessage>& example = Example(at);
    messages.insert(messages.end(), example.begin(), example.end());
  }
  return messages;
}

// Messages as a request's context: plain text, or the rendering of the chat template. If the answer
// has a prefix, the model continues the last message.
std::string PromptBuilder::Spell(std::vector<PromptMessage> messages, bool has_prefix) const {
  if (options_.chat == nullptr) return JoinMessages(messages);
  if (!options_.fewshot_as_multiturn) messages = AsOneTurn(std::move(messages));
  Json chat = Json::array();
  for (const PromptMessage& message : messages) {
    chat.push_back({{"role", message.role}, {"content", message.content}});
  }
  return options_.chat->RenderForHarness(chat, !has_prefix);
}

// The delimiter between the context and a choice. With a chat template there is none, unless the
// answer's prefix ends in a word.
std::string PromptBuilder::ChoiceDelimiter() const {
  if (options_.chat == nullptr) return config_.target_delimiter;
  const Json& prefix = config_.gen_prefix;
  const bool ends_in_word = prefix.is_string() && prefix != "" &&
                            !python::EndsWithSpace(prefix.get_ref<const std::string&>());
  return ends_in_word ? config_.target_delimiter : "";
}

// ConfigurableTask.fewshot_context: one context, or one for each choice.
std::vector<std::string> PromptBuilder::Contexts(const DocRef& doc, const PreparedDocument& out) {
  const std::vector<PromptMessage> before = Messages(doc);
  const Json question = text_.Text(doc, !choice_.IsNull());
  std::vector<std::string> questions;
  if (multiple_input_) {
    questions = out.choices.get<std::vector<std::string>>();
  } else if (question.is_string()) {
    questions.push_back(question.get<std::string>());
  } else {
    Fail(fmt::format("doc_to_text gives {}, not text", PythonRepr(question)));
  }
  Turn turn;
  turn.gen_prefix = Prefix(gen_prefix_, doc);
  turn.target_delimiter = multiple_input_ ? "" : config_.target_delimiter;
  std::vector<std::string> contexts;
  for (const std::string& text : questions) {
    turn.question = text;
    std::vector<PromptMessage> messages = before;
    AddTurn(turn, &messages);
    contexts.push_back(Spell(std::move(messages), !turn.gen_prefix.empty()));
  }
  return contexts;
}

// Refuses targets and choices that cannot be scored, before anything is generated.
void PromptBuilder::CheckLabels(const PreparedDocument& document) const {
  if (config_.output_type != "multiple_choice") return;
  if (document.choices.empty()) Fail("doc_to_choice gives no choice");
  const Json& target = document.target;
  if (target.is_array() != multiple_target_) {
    Fail(fmt::format("doc_to_target gives {}, expected {} as for the first document",
                     PythonRepr(target), multiple_target_ ? "a list" : "one label"));
  }
  const bool fine = target.is_array() ? std::all_of(target.begin(), target.end(), IsLabel)
                                      : IsLabel(target) || target.is_string();
  if (!fine) {
    Fail(fmt::format("doc_to_target gives {}, expected {}", PythonRepr(target),
                     multiple_target_ ? "a list of labels" : "a label or the text of a choice"));
  }
}

// ConfigurableTask.construct_requests.
std::vector<Request> PromptBuilder::MakeRequests(const std::vector<std::string>& contexts,
                                                 const PreparedDocument& document) const {
  std::vector<Request> requests;
  const auto add = [&](RequestKind kind, const std::string& context,
                       const std::string& continuation) {
    Request request;
    request.doc_id = document.doc_id;
    request.idx = static_cast<int>(requests.size());
    request.kind = kind;
    request.context = context;
    request.continuation = continuation;
    requests.push_back(std::move(request));
  };
  const auto target_text = [&]() {
    if (!document.target.is_string()) {
      Fail(fmt::format("doc_to_target gives {}, not text", PythonRepr(document.target)));
    }
    return document.target.get<std::string>();
  };
  if (config_.output_type == "generate_until") {
    add(RequestKind::kGenerateUntil, contexts[0], "");
    requests[0].sampling = config_.sampling;
    requests[0].sampling.think_end = options_.think_end;
  } else if (config_.output_type == "loglikelihood") {
    add(RequestKind::kLoglikelihood, contexts[0], target_text());
  } else if (config_.output_type == "loglikelihood_rolling") {
    add(RequestKind::kLoglikelihoodRolling, target_text(), "");
  } else {
    const std::string delimiter = ChoiceDelimiter();
    const auto choices = document.choices.get<std::vector<std::string>>();
    if (multiple_input_) {
      const std::string continuation = delimiter + PythonStr(document.target);
      for (const std::string& context : contexts) {
        add(RequestKind::kLoglikelihood, context, continuation);
      }
    } else {
      for (const std::string& choice : choices) {
        add(RequestKind::kLoglikelihood, contexts[0], delimiter + choice);
      }
    }
    const bool unconditional = NeedsUnconditional(config_.metrics);
    for (size_t i = 0; unconditional && i < choices.size(); ++i) {
      add(RequestKind::kLoglikelihood, "", delimiter + choices[i]);
    }
  }
  return requests;
}

// The right one of the contexts.
Json PromptBuilder::Label(const DocRef& doc) const {
  Json label = text_.Text(doc, true);
  if (IsLabel(label)) return label;
  Fail(fmt::format("doc_to_text gives {}, expected a label as for the first document",
                   PythonRepr(label)));
}

PreparedDocument PromptBuilder::Document(int64_t doc_id, const DocRef& doc) const {
  PreparedDocument out;
  out.doc_id = doc_id;
  out.doc = python::PlainDates(doc.row);
  out.target = target_.Target(doc, !choice_.IsNull());
  if (!choice_.IsNull()) out.choices = choice_.Choices(doc);
  if (multiple_input_) out.label = Label(doc);
  CheckLabels(out);
  return out;
}

PreparedDocument PromptBuilder::Build(int64_t doc_id, const DocRef& doc,
                                      std::vector<Request>* requests) {
  PreparedDocument out = Document(doc_id, doc);
  *requests = MakeRequests(Contexts(doc, out), out);
  return out;
}

}  // namespace evald
