#include "chat/template_files.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "tokenizer/tokenizer_config.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kTemplateBytesMax = 4 << 20;
constexpr size_t kTemplatesMax = 1000;

void Add(const std::string& name, TemplateText text,
         std::map<std::string, TemplateText>* templates) {
  if (text.text.size() > kTemplateBytesMax) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: a chat template of {}, expected at most {}", text.where,
                            HumanBytes(text.text.size()), HumanBytes(kTemplateBytesMax)));
  }
  if (!IsUtf8(text.text)) {
    throw Error(ErrorKind::kInput, text.where + ": the chat template is not valid UTF-8");
  }
  (*templates)[name] = std::move(text);
}

std::map<std::string, TemplateText> ReadFiles(const ReadFolder& directory) {
  std::map<std::string, TemplateText> templates;
  const std::string one = "chat_template.jinja";
  if (directory.HasFile(one)) {
    Add("default", {directory.Read(one, kTemplateBytesMax), (directory / one).string()},
        &templates);
  }
  const ReadFolder more = directory.Folder("additional_chat_templates");
  if (!more.exists()) return templates;
  for (const std::string& name : more.Names(".", kTemplatesMax)) {
    const fs::path path = more / name;
    if (path.extension() != ".jinja" || !more.HasFile(name)) continue;
    Add(path.stem().string(), {more.Read(name, kTemplateBytesMax), path.string()}, &templates);
  }
  return templates;
}

// "chat_template": the text, or [{"name": ..., "template": ...}, ...], or {name: text}.
std::map<std::string, TemplateText> FromConfig(const Json& value, const std::string& where) {
  std::map<std::string, TemplateText> templates;
  if (value.is_string()) {
    Add("default", {value.get<std::string>(), where}, &templates);
  } else if (value.is_array()) {
    for (const Json& item : value) {
      const auto name = Field<std::string>(item, "name", where);
      Add(name, {Field<std::string>(item, "template", where), fmt::format("{} '{}'", where, name)},
          &templates);
    }
  } else if (value.is_object()) {
    for (const auto& [name, text] : value.items()) {
      Add(name, {Field<std::string>(value, name, where), fmt::format("{} '{}'", where, name)},
          &templates);
    }
  } else if (!value.is_null()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: found {}, expected a text or a list of named ones", where,
                            value.type_name()));
  }
  return templates;
}

}  // namespace

std::map<std::string, TemplateText> ReadChatTemplates(const ReadFolder& directory) {
  std::map<std::string, TemplateText> templates = ReadFiles(directory);
  if (!templates.empty()) return templates;
  const fs::path file = directory / "tokenizer_config.json";
  const Json config = tok::ReadObject(directory, "tokenizer_config.json");
  const auto found = config.find("chat_template");
  return found == config.end() ? templates : FromConfig(*found, file.string() + ": chat_template");
}

}  // namespace evald
