#include "tokenizer/post_processors.h"

#include <fmt/format.h>

#include "base/jsonl.h"
#include "evald/error.h"
#include "tokenizer/component.h"
#include "tokenizer/vocabulary.h"

namespace evald::tok {
namespace {

std::vector<int32_t> IdsOf(const Json& special_tokens, const std::string& name,
                           const std::string& where) {
  const Json entry = Field<Json>(special_tokens, name, where + ": special_tokens");
  std::vector<int32_t> ids;
  for (const int id : Field<std::vector<int>>(entry, "ids", where + ": " + name)) {
    if (id < 0 || id >= Vocabulary::kIdsMax) {
      throw Error(ErrorKind::kInput, fmt::format("{}: '{}' has the id {}", where, name, id));
    }
    ids.push_back(id);
  }
  return ids;
}

Surround ReadTemplate(const Json& json, const std::string& where) {
  CheckMembers(json, {"single", "pair", "special_tokens"}, where);
  const Json special_tokens = FieldOr<Json>(json, "special_tokens", Json::object(), where);
  Surround surround;
  bool text_seen = false;
  for (const Json& part : Field<std::vector<Json>>(json, "single", where)) {
    if (part.is_object() && part.contains("SpecialToken")) {
      const std::string name = Field<std::string>(part["SpecialToken"], "id", where);
      std::vector<int32_t>& side = text_seen ? surround.after : surround.before;
      for (const int32_t id : IdsOf(special_tokens, name, where)) side.push_back(id);
      continue;
    }
    const std::string name = Field<std::string>(Field<Json>(part, "Sequence", where), "id", where);
    if (name != "A" || text_seen) {
      throw Error(ErrorKind::kInput,
                  where + ": the template 'single' must contain the sequence A once");
    }
    text_seen = true;
  }
  if (!text_seen) {
    throw Error(ErrorKind::kInput, where + ": the template 'single' leaves out the sequence A");
  }
  return surround;
}

}  // namespace

Surround ReadPostProcessor(const Json& json, const std::string& where) {
  if (json.is_null()) return {};
  const std::string type = TypeOf(json, where);
  if (type == "TemplateProcessing") return ReadTemplate(json, where);
  if (type == "ByteLevel") {
    CheckMembers(json, {"add_prefix_space", "trim_offsets", "use_regex"}, where);
    return {};
  }
  if (type == "Sequence") {
    CheckMembers(json, {"processors"}, where);
    Surround whole;
    for (const Json& part : Field<std::vector<Json>>(json, "processors", where)) {
      const Surround outer = ReadPostProcessor(part, where);
      whole.before.insert(whole.before.begin(), outer.before.begin(), outer.before.end());
      whole.after.insert(whole.after.end(), outer.after.begin(), outer.after.end());
    }
    return whole;
  }
  RefuseType("post-processor", type, {"TemplateProcessing", "ByteLevel", "Sequence"}, where);
}

}  // namespace evald::tok
