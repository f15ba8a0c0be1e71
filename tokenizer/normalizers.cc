#include "tokenizer/normalizers.h"

#include <fmt/format.h>

#include <functional>
#include <vector>

#include "base/jsonl.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/component.h"
#include "tokenizer/pattern.h"
#include "tokenizer/unicode.h"

namespace evald::tok {
namespace {

class FunctionNormalizer : public Normalizer {
 public:
  explicit FunctionNormalizer(std::function<std::string(std::string)> function)
      : function_(std::move(function)) {}
  std::string Apply(std::string text) const override { return function_(std::move(text)); }

 private:
  std::function<std::string(std::string)> function_;
};

class ReplaceNormalizer : public Normalizer {
 public:
  ReplaceNormalizer(const Json& json, const std::string& where)
      : pattern_(Pattern::FromJson(Field<Json>(json, "pattern", where), where)),
        content_(Field<std::string>(json, "content", where)) {
    CheckMembers(json, {"pattern", "content"}, where);
  }
  std::string Apply(std::string text) const override { return pattern_.Replace(text, content_); }

 private:
  Pattern pattern_;
  std::string content_;
};

class SequenceNormalizer : public Normalizer {
 public:
  SequenceNormalizer(const Json& json, const std::string& where) {
    CheckMembers(json, {"normalizers"}, where);
    for (const Json& part : Field<std::vector<Json>>(json, "normalizers", where)) {
      parts_.push_back(MakeNormalizer(part, fmt::format("{}[{}]", where, parts_.size())));
    }
  }
  std::string Apply(std::string text) const override {
    const size_t before = text.size();
    for (const auto& part : parts_) {
      if (part) text = part->Apply(std::move(text));
      CheckGrowth(before, text.size());
    }
    return text;
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

std::string StripAccents(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const char32_t code = NextCodePoint(text, &at);
    if (!IsMark(code)) AppendUtf8(&out, code);
  }
  return out;
}

std::string Strip(std::string_view text, bool left, bool right) {
  while (left && !text.empty()) {
    size_t at = 0;
    if (!IsWhitespace(NextCodePoint(text, &at))) break;
    text.remove_prefix(at);
  }
  while (right && !text.empty()) {
    const size_t start = PreviousStart(text, text.size());
    size_t at = start;
    if (!IsWhitespace(NextCodePoint(text, &at))) break;
    text = text.substr(0, start);
  }
  return std::string(text);
}

std::unique_ptr<Normalizer> FromFunction(std::function<std::string(std::string)> function) {
  return std::make_unique<FunctionNormalizer>(std::move(function));
}

std::unique_ptr<Normalizer> MakeForm(const Json& json, NormalForm form, const std::string& where) {
  CheckMembers(json, {}, where);
  return FromFunction([form](const std::string& text) { return Normalize(text, form); });
}

std::unique_ptr<Normalizer> MakeStrip(const Json& json, const std::string& where) {
  CheckMembers(json, {"strip_left", "strip_right"}, where);
  const bool left = Field<bool>(json, "strip_left", where);
  const bool right = Field<bool>(json, "strip_right", where);
  return FromFunction([=](const std::string& text) { return Strip(text, left, right); });
}

std::unique_ptr<Normalizer> MakePrepend(const Json& json, const std::string& where) {
  CheckMembers(json, {"prepend"}, where);
  return FromFunction([prefix = Field<std::string>(json, "prepend", where)](
                          const std::string& text) { return text.empty() ? text : prefix + text; });
}

}  // namespace

std::unique_ptr<Normalizer> MakeNormalizer(const Json& json, const std::string& where) {
  if (json.is_null()) return nullptr;
  const std::string type = TypeOf(json, where);
  if (type == "NFC") return MakeForm(json, NormalForm::kNfc, where);
  if (type == "NFD") return MakeForm(json, NormalForm::kNfd, where);
  if (type == "NFKC") return MakeForm(json, NormalForm::kNfkc, where);
  if (type == "NFKD") return MakeForm(json, NormalForm::kNfkd, where);
  if (type == "Strip") return MakeStrip(json, where);
  if (type == "Prepend") return MakePrepend(json, where);
  if (type == "Replace") return std::make_unique<ReplaceNormalizer>(json, where);
  if (type == "Sequence") return std::make_unique<SequenceNormalizer>(json, where);
  if (type == "Lowercase") {
    CheckMembers(json, {}, where);
    return FromFunction([](const std::string& text) { return Lowercase(text); });
  }
  if (type == "StripAccents") {
    CheckMembers(json, {}, where);
    return FromFunction([](const std::string& text) { return StripAccents(text); });
  }
  if (type == "ByteLevel") {
    CheckMembers(json, {}, where);
    return FromFunction([](const std::string& text) { return ToByteAlphabet(text); });
  }
  RefuseType("normalizer", type,
             {"NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Strip", "StripAccents", "Prepend",
              "Replace", "ByteLevel", "Sequence"},
             where);
}

}  // namespace evald::tok
