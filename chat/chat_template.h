#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/chat_date.h"
#include "base/read_roots.h"
#include "evald/json.h"
#include "jinja/template.h"

namespace evald {

/// A checkpoint's chat template: turns messages into the text that its model was trained on, as
/// transformers 5.23's apply_chat_template(tokenize=False) does, with tools=None, documents=None
/// and the named special tokens as variables. Immutable; any thread may render.
class ChatTemplate {
 public:
  /// Special tokens are those of the folder's tokenizer, with the padding that the harness gives
  /// it. Reads the template from a checkpoint's folder: chat_template.jinja and
  /// additional_chat_templates/*.jinja if there are any, else chat_template of
  /// tokenizer_config.json (one, or a list of named ones). `name` picks one of several; "" takes
  /// the only one, or "default". `date` is what strftime_now shows; without it a template that asks
  /// for the date is refused, and so is one that asks for the time of day if the date has none.
  /// Throws Error(kInput) if there is no template, if none has that name (the error lists the
  /// names), or if the template does not parse.
  static ChatTemplate Load(const ReadFolder& directory, const std::string& name,
                           const std::optional<ChatDate>& date);

  /// `special_tokens` is {"bos_token": "<s>", ...}; `where` is used in errors.
  ChatTemplate(std::string text, Json special_tokens, const std::optional<ChatDate>& date,
               std::string where);

  /// The same template with arguments of its own, as the keyword arguments that the harness gives
  /// apply_chat_template (chat_template_args, enable_thinking). They are variables of the template,
  /// and take the place of special tokens of the same names.
  ChatTemplate WithArguments(const Json& arguments) const;
  /// The names that no argument may have: those of apply_chat_template's own parameters.
  static const std::vector<std::string>& ReservedArguments();
  /// Whether the template's text has the name of a variable.
  bool Mentions(const std::string& variable) const;

  /// The text of `messages`, a list of {"role", "content"}. With `add_generation_prompt` the
  /// template opens the model's turn behind them; without, the last message is one that the model
  /// goes on with, and the text ends where its content does (continue_final_message). Throws
  /// Error(kInput); jinja::TemplateStopped where the template itself objects.
  std::string Render(const Json& messages, bool add_generation_prompt) const;

  /// Render, and where the template objects (jinja2's TemplateError), the same without the system
  /// message: as lm-evaluation-harness asks its models (HFLM.apply_chat_template, lm_eval 0.4.13).
  std::string RenderForHarness(const Json& messages, bool add_generation_prompt) const;

  const std::string& text() const { return text_; }
  const std::string& where() const { return where_; }
  /// Everything that decides what is rendered: part of a prepared task's content key.
  Json Identity() const;

 private:
  std::string text_;
  Json special_tokens_;
  Json arguments_ = Json::object();
  std::optional<ChatDate> date_;
  std::string where_;
  std::shared_ptr<const jinja::Template> template_;
};

}  // namespace evald
