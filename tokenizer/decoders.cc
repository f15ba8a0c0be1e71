#include "tokenizer/decoders.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/find_text.h"
#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/component.h"
#include "tokenizer/pattern.h"
#include "tokenizer/unicode.h"

namespace evald::tok {
namespace {

std::string Joined(const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

size_t Bytes(const std::vector<std::string>& tokens) {
  size_t bytes = 0;
  for (const std::string& token : tokens) bytes += token.size();
  return bytes;
}

class ByteLevelDecoder : public Decoder {
 public:
  void Apply(std::vector<std::string>* tokens) const override {
    std::string bytes;
    for (const std::string& token : *tokens) AppendBytes(token, &bytes);
    *tokens = {ReplaceInvalidUtf8(bytes)};
  }

 private:
  // A token with a character outside the alphabet represents itself.
  static void AppendBytes(const std::string& token, std::string* bytes) {
    const size_t before = bytes->size();
    for (size_t at = 0; at < token.size();) {
      const int byte = FromByteAlphabet(NextCodePoint(token, &at));
      if (byte < 0) {
        bytes->resize(before);
        *bytes += token;
        return;
      }
      bytes->push_back(static_cast<char>(byte));
    }
  }
};

// The value of <0x41>, or -1. A sign may replace the first digit, as in Rust's from_str_radix.
int ByteToken(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  const auto is_digit = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
  if (!(is_digit(token[3]) || token[3] == '+') || !is_digit(token[4])) return -1;
  return std::stoi(token.substr(3, 2), nullptr, 16);
}

class ByteFallbackDecoder : public Decoder {
 public:
  void Apply(std::vector<std::string>* tokens) const override {
    std::vector<std::string> out;
    std::string bytes;
    const auto flush = [&] {
      if (IsUtf8(bytes)) {
        if (!bytes.empty()) out.push_back(bytes);
      } else {
        out.insert(out.end(), bytes.size(), "\xEF\xBF\xBD");
      }
      bytes.clear();
    };
    for (std::string& token : *tokens) {
      if (const int byte = ByteToken(token); byte >= 0) {
        bytes.push_back(static_cast<char>(byte));
      } else {
        flush();
        out.push_back(std::move(token));
      }
    }
    flush();
    *tokens = std::move(out);
  }
};

class FuseDecoder : public Decoder {
 public:
  void Apply(std::vector<std::string>* tokens) const override { *tokens = {Joined(*tokens)}; }
};

class MetaspaceDecoder : public Decoder {
 public:
  MetaspaceDecoder(const Json& json, const std::string& where)
      : replacement_(OneCharacter(json, "replacement", where)) {
    CheckMembers(json, {"replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"},
                 where);
    const std::string scheme = FieldOr<std::string>(json, "prepend_scheme", "always", where);
    if (scheme != "first" && scheme != "always" && scheme != "never") {
      RefuseType("prepend_scheme", scheme, {"first", "always", "never"}, where);
    }
    drop_in_first_ = scheme != "never";
  }

  void Apply(std::vector<std::string>* tokens) const override {
    for (size_t i = 0; i < tokens->size(); ++i) {
      const std::string_view instead = i == 0 && drop_in_first_ ? "" : " ";
      std::string& token = (*tokens)[i];
      std::string decoded;
      size_t copied = 0;
      for (size_t at = FindText(token, replacement_); at != std::string::npos;
           at = FindText(token, replacement_, copied)) {
        decoded.append(token, copied, at - copied).append(instead);
        copied = at + replacement_.size();
      }
      token = decoded.append(token, copied);
    }
  }

 private:
  std::string replacement_;
  bool drop_in_first_ = true;
};

class ReplaceDecoder : public Decoder {
 public:
  ReplaceDecoder(const Json& json, const std::string& where)
      : pattern_(Pattern::FromJson(Field<Json>(json, "pattern", where), where)),
        content_(Field<std::string>(json, "content", where)) {
    CheckMembers(json, {"pattern", "content"}, where);
  }

  void Apply(std::vector<std::string>* tokens) const override {
    for (std::string& token : *tokens) token = pattern_.Replace(token, content_);
  }

 private:
  Pattern pattern_;
  std::string content_;
};

// Removes up to `start` copies of the character from the beginning of each token and up to `stop`
// from its end.
class StripDecoder : public Decoder {
 public:
  StripDecoder(const Json& json, const std::string& where)
      : content_(OneCharacter(json, "content", where)),
        start_(Field<uint64_t>(json, "start", where)),
        stop_(Field<uint64_t>(json, "stop", where)) {
    CheckMembers(json, {"content", "start", "stop"}, where);
  }

  void Apply(std::vector<std::string>* tokens) const override {
    for (std::string& token : *tokens) {
      std::string_view rest = token;
      for (uint64_t i = 0; i < start_ && rest.starts_with(content_); ++i) {
        rest.remove_prefix(content_.size());
      }
      for (uint64_t i = 0; i < stop_ && rest.ends_with(content_); ++i) {
        rest.remove_suffix(content_.size());
      }
      token = std::string(rest);
    }
  }

 private:
  std::string content_;
  uint64_t start_;
  uint64_t stop_;
};

class SequenceDecoder : public Decoder {
 public:
  SequenceDecoder(const Json& json, const std::string& where) {
    CheckMembers(json, {"decoders"}, where);
    for (const Json& part : Field<std::vector<Json>>(json, "decoders", where)) {
      parts_.push_back(MakeDecoder(part, fmt::format("{}[{}]", where, parts_.size())));
    }
  }

  void Apply(std::vector<std::string>* tokens) const override {
    const size_t before = Bytes(*tokens);
    for (const auto& part : parts_) {
      if (part) part->Apply(tokens);
      CheckGrowth(before, Bytes(*tokens));
    }
  }

 private:
  std::vector<std::unique_ptr<Decoder>> parts_;
};

}  // namespace

std::unique_ptr<Decoder> MakeDecoder(const Json& json, const std::string& where) {
  if (json.is_null()) return nullptr;
  const std::string type = TypeOf(json, where);
  if (type == "ByteLevel") {
    CheckMembers(json, {"add_prefix_space", "trim_offsets", "use_regex"}, where);
    return std::make_unique<ByteLevelDecoder>();
  }
  if (type == "ByteFallback") {
    CheckMembers(json, {}, where);
    return std::make_unique<ByteFallbackDecoder>();
  }
  if (type == "Fuse") {
    CheckMembers(json, {}, where);
    return std::make_unique<FuseDecoder>();
  }
  if (type == "Metaspace") return std::make_unique<MetaspaceDecoder>(json, where);
  if (type == "Replace") return std::make_unique<ReplaceDecoder>(json, where);
  if (type == "Strip") return std::make_unique<StripDecoder>(json, where);
  if (type == "Sequence") return std::make_unique<SequenceDecoder>(json, where);
  RefuseType("decoder", type,
             {"ByteLevel", "ByteFallback", "Fuse", "Metaspace", "Replace", "Strip", "Sequence"},
             where);
}

}  // namespace evald::tok
