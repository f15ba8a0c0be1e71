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

// Consecutive parts. Each part is a list of tokens, or the text.
using Parts = std::vector<std::vector<int32_t>>;

// A template names ids by reference, so a short file could add any number of them to every text.
constexpr size_t kAddedMax = 4096;

void CheckCount(size_t tokens, const std::string& where) {
  if (tokens <= kAddedMax) return;
  throw Error(ErrorKind::kInput,
              fmt::format("{}: adds more than {} tokens to every text", where, kAddedMax));
}

// The part that a template calls sequence A or B.
const std::vector<int32_t>& PartNamed(const Parts& parts, const std::string& name,
                                      const std::string& where) {
  const size_t index = name == "A" ? 0 : name == "B" ? 1 : parts.size();
  if (index < parts.size()) return parts[index];
  throw Error(ErrorKind::kInput, fmt::format("{}: the template names the sequence '{}', expected "
                                             "one of A{}",
                                             where, name, parts.size() > 1 ? " and B" : ""));
}

void ApplyTemplate(const Json& json, bool special, const std::string& where, Parts* parts) {
  CheckMembers(json, {"single", "pair", "special_tokens"}, where);
  if (parts->empty() || parts->size() > 2) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: the templates before it leave {} parts, expected one or two",
                            where, parts->size()),
                "merge the templates of the sequence into one");
  }
  const Json special_tokens = FieldOr<Json>(json, "special_tokens", Json::object(), where);
  const char* pieces = parts->size() == 1 ? "single" : "pair";
  Parts whole;
  size_t tokens = 0;
  for (const Json& piece : Field<std::vector<Json>>(json, pieces, where)) {
    if (piece.is_object() && piece.contains("SpecialToken")) {
      const std::string name = Field<std::string>(piece["SpecialToken"], "id", where);
      std::vector<int32_t> ids = IdsOf(special_tokens, name, where);
      CheckCount(tokens += ids.size(), where);
      if (special) whole.push_back(std::move(ids));
      continue;
    }
    const Json sequence = Field<Json>(piece, "Sequence", where);
    const std::vector<int32_t>& part =
        PartNamed(*parts, Field<std::string>(sequence, "id", where), where);
    CheckCount(tokens += part.size(), where);
    whole.push_back(part);
  }
  *parts = std::move(whole);
}

void Apply(const Json& json, bool special, const std::string& where, Parts* parts) {
  const std::string type = TypeOf(json, where);
  if (type == "TemplateProcessing") return ApplyTemplate(json, special, where, parts);
  if (type == "ByteLevel") {
    return CheckMembers(json, {"add_prefix_space", "trim_offsets", "use_regex"}, where);
  }
  if (type == "Sequence") {
    CheckMembers(json, {"processors"}, where);
    for (const Json& part : Field<std::vector<Json>>(json, "processors", where)) {
      Apply(part, special, where, parts);
    }
    return;
  }
  RefuseType("post-processor", type, {"TemplateProcessing", "ByteLevel", "Sequence"}, where);
}

std::vector<int32_t> Arranged(const Json& json, bool special, const std::string& where) {
  Parts parts = {{Arrangement::kText}};
  Apply(json, special, where, &parts);
  std::vector<int32_t> whole;
  for (const auto& part : parts) whole.insert(whole.end(), part.begin(), part.end());
  return whole;
}

}  // namespace

Arrangement ReadPostProcessor(const Json& json, const std::string& where) {
  if (json.is_null()) return {};
  return {Arranged(json, true, where), Arranged(json, false, where)};
}

}  // namespace evald::tok
