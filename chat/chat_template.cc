#include "chat/chat_template.h"

#include <fmt/format.h>

#include <map>
#include <vector>

#include "base/find_text.h"
#include "base/jsonl.h"
#include "base/text.h"
#include "chat/template_files.h"
#include "evald/error.h"
#include "python/str.h"
#include "tokenizer/special_tokens.h"

namespace evald {
namespace {

// Stands behind the last message while it is rendered, to find where its content ends.
constexpr std::string_view kTag = "CONTINUE_FINAL_MESSAGE_TAG ";

std::string Names(const std::map<std::string, TemplateText>& templates) {
  std::vector<std::string> names;
  for (const auto& [name, text] : templates) names.push_back(name);
  return Join(names, ", ");
}

const TemplateText& Pick(const std::map<std::string, TemplateText>& templates,
                         const std::string& name, const std::string& directory) {
  if (templates.empty()) {
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: found no chat template, expected chat_template.jinja or chat_template in "
                    "tokenizer_config.json",
                    directory),
        "add one, or leave chat_template out of eval.yaml");
  }
  const auto found = templates.find(name.empty() ? "default" : name);
  if (found != templates.end()) return found->second;
  throw Error(ErrorKind::kInput,
              name.empty()
                  ? fmt::format("{}: found several chat templates ({}) and none is the default",
                                directory, Names(templates))
                  : fmt::format("{}: no chat template is named '{}', found {}", directory, name,
                                Names(templates)),
              "name one of them under chat_template in eval.yaml");
}

jinja::TemplateOptions OptionsFor(const std::optional<ChatDate>& date) {
  jinja::TemplateOptions options = jinja::TemplateOptions::ChatTemplate();
  options.now = date;
  return options;
}

// The tokens that a template sees in the harness: if none is named for padding, the token for
// unknown words is used for it, or else the token that ends a text (lm_eval 0.4.13,
// configure_pad_token).
Json WithPadding(Json tokens) {
  for (const char* name : {"pad_token", "unk_token", "eos_token"}) {
    const std::string content = tokens.value(name, "");
    if (content.empty()) continue;
    tokens["pad_token"] = content;
    return tokens;
  }
  tokens["pad_token"] = "<|pad|>";
  return tokens;
}

}  // namespace

ChatTemplate ChatTemplate::Load(const ReadFolder& directory, const std::string& name,
                                const std::optional<ChatDate>& date) {
  const std::map<std::string, TemplateText> templates = ReadChatTemplates(directory);
  const TemplateText& picked = Pick(templates, name, directory.path().string());
  return {picked.text, WithPadding(tok::NamedTokenContents(directory)), date, picked.where};
}

ChatTemplate::ChatTemplate(std::string text, Json special_tokens,
                           const std::optional<ChatDate>& date, std::string where)
    : text_(std::move(text)),
      special_tokens_(std::move(special_tokens)),
      date_(date),
      where_(std::move(where)),
      template_(std::make_shared<jinja::Template>(text_, OptionsFor(date), where_)) {}

ChatTemplate ChatTemplate::WithArguments(const Json& arguments) const {
  ChatTemplate other = *this;
  other.arguments_.update(arguments);
  return other;
}

// transformers 5.23, PreTrainedTokenizerBase.apply_chat_template and render_jinja_template.
const std::vector<std::string>& ChatTemplate::ReservedArguments() {
  static const std::vector<std::string> kNames = {"add_generation_prompt",
                                                  "chat_template",
                                                  "continue_final_message",
                                                  "conversation",
                                                  "conversations",
                                                  "documents",
                                                  "max_length",
                                                  "messages",
                                                  "padding",
                                                  "return_assistant_tokens_mask",
                                                  "return_dict",
                                                  "return_tensors",
                                                  "self",
                                                  "tokenize",
                                                  "tokenizer_kwargs",
                                                  "tools",
                                                  "truncation"};
  return kNames;
}

bool ChatTemplate::Mentions(const std::string& variable) const {
  return text_.find(variable) != std::string::npos;
}

std::string ChatTemplate::Render(const Json& messages, bool add_generation_prompt) const {
  if (messages.empty()) throw Error(ErrorKind::kInput, where_ + ": there are no messages");
  Json variables = special_tokens_;
  variables.update(arguments_);
  variables["messages"] = messages;
  variables["tools"] = nullptr;
  variables["documents"] = nullptr;
  variables["add_generation_prompt"] = add_generation_prompt;
  if (add_generation_prompt) return template_->Render(variables);

  if (text_.find("content") == std::string::npos) {
    throw Error(ErrorKind::kInput,
                where_ +
                    ": the template never reads 'content', so that the last message cannot "
                    "be gone on with");
  }
  Json& last = variables["messages"].back()["content"];
  const std::string content = last.get<std::string>();
  last = content + std::string(kTag);
  std::string text = template_->Render(variables);
  const size_t at = text.rfind(kTag.substr(0, kTag.size() - 1));
  if (at == std::string::npos || FindText(text, python::Strip(content)) == std::string::npos) {
    throw Error(
        ErrorKind::kInput,
        fmt::format(
            "{}: the template drops or changes the last message '{}', so that it cannot be gone on "
            "with",
            where_, Shortened(content, 80)));
  }
  // A template that trims the message has taken the tag's own space, and what stood before it.
  const bool keeps_space = text.compare(at, kTag.size(), kTag) == 0;
  text.resize(at);
  return keeps_space ? text : std::string(python::StripRight(text));
}

std::string ChatTemplate::RenderForHarness(const Json& messages, bool add_generation_prompt) const {
  try {
    return Render(messages, add_generation_prompt);
  } catch (const jinja::TemplateStopped&) {
    Json rest = Json::array();
    for (const Json& message : messages) {
      if (message["role"] != "system") rest.push_back(message);
    }
    if (rest.size() == messages.size()) throw;
    return Render(rest, add_generation_prompt);
  }
}

Json ChatTemplate::Identity() const {
  Json identity = {
      {"template", text_}, {"special_tokens", special_tokens_}, {"day", ToJson(date_)}};
  if (!arguments_.empty()) identity["arguments"] = arguments_;
  return identity;
}

}  // namespace evald
