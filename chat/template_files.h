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

/// The chat templates of a checkpoint by name; the only one of tokenizer_config.json or of
/// chat_template.jinja is "default". Files win over tokenizer_config.json, as in transformers 5.
/// Empty where there are none. Throws Error(kInput) for files that are broken.
std::map<std::string, TemplateText> ReadChatTemplates(const ReadFolder& directory);

}  // namespace evald
