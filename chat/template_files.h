#pragma once

#include <map>
#include <string>

#include "base/read_roots.h"
namespace evald {

/// A template as it stands in a checkpoint, and the place where it does.
struct TemplateText {
  std::string text;
  std::string where;
};

/// The chat templates of a checkpoint, by name. The template of chat_template.jinja is "default",
/// and so is a `chat_template` of tokenizer_config.json that is one text. If there is any .jinja
/// template, tokenizer_config.json is not read, as in transformers 5. The map is empty if the
/// checkpoint has no template. Throws Error(kInput) for files that are broken.
std::map<std::string, TemplateText> ReadChatTemplates(const ReadFolder& directory);

}  // namespace evald
