#include "tokenizer/pre_tokenizers.h"

#include <fmt/format.h>

#include <functional>
#include <optional>

#include "base/jsonl.h"
#include "evald/error.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/component.h"
#include "tokenizer/pattern.h"
#include "tokenizer/unicode.h"

namespace evald::tok {
namespace {

// Adds the parts of `piece` to `out`.
void Take(const Piece& piece, const std::vector<Stretch>& parts, std::vector<Piece>* out) {
  for (const Stretch& part : parts) {
    if (part.begin == part.end) continue;
    out->push_back(
        {piece.text.substr(part.begin, part.end - part.begin), piece.at_start && part.begin == 0});
  }
}

size_t Bytes(const std::vector<Piece>& pieces) {
  size_t bytes = 0;
  for (const Piece& piece : pieces) bytes += piece.text.size();
  return bytes;
}

// Splits every piece at what `find` finds in it.
class Splitter : public PreTokenizer {
 public:
  using Finder = std::function<Cover(std::string_view)>;

  Splitter(Finder find, SplitBehavior behavior) : find_(std::move(find)), behavior_(behavior) {}

  void Apply(std::vector<Piece>* pieces) const override {
    std::vector<Piece> out;
    for (const Piece& piece : *pieces) {
      Take(piece, ApplyBehavior(find_(piece.text), behavior_), &out);
    }
    *pieces = std::move(out);
  }

 private:
  Finder find_;
  SplitBehavior behavior_;
};

class ByteLevel : public PreTokenizer {
 public:
  ByteLevel(const Json& json, const std::string& where)
      : add_prefix_space_(Field<bool>(json, "add_prefix_space", where)) {
    // trim_offsets decides offsets only, which evald does not report.
    CheckMembers(json, {"add_prefix_space", "trim_offsets", "use_regex"}, where);
    if (FieldOr<bool>(json, "use_regex", true, where)) words_ = Pattern::FromRegex(kGpt2Pattern);
  }

  void Apply(std::vector<Piece>* pieces) const override {
    std::vector<Piece> out;
    for (Piece& piece : *pieces) {
      if (add_prefix_space_ && !piece.text.starts_with(' ')) piece.text.insert(0, 1, ' ');
      if (words_) {
        Take(piece, words_->Find(piece.text), &out);
      } else {
        out.push_back(std::move(piece));
      }
    }
    for (Piece& piece : out) piece.text = ToByteAlphabet(piece.text);
    *pieces = std::move(out);
  }

 private:
  bool add_prefix_space_;
  std::optional<Pattern> words_;
};

class Metaspace : public PreTokenizer {
 public:
  Metaspace(const Json& json, const std::string& where)
      : replacement_(OneCharacter(json, "replacement", where)),
        scheme_(FieldOr<std::string>(json, "prepend_scheme", "always", where)),
        split_(FieldOr<bool>(json, "split", true, where)) {
    CheckMembers(json, {"replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"},
                 where);
    if (scheme_ != "first" && scheme_ != "always" && scheme_ != "never") {
      RefuseType("prepend_scheme", scheme_, {"first", "always", "never"}, where);
    }
    if (!FieldOr<bool>(json, "add_prefix_space", true, where) && scheme_ != "never") {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: add_prefix_space is false, but prepend_scheme is '{}'; expected "
                              "'never'",
                              where, scheme_));
    }
  }

  bool LooksAtStart() const override { return scheme_ == "first"; }

  void Apply(std::vector<Piece>* pieces) const override {
    std::vector<Piece> out;
    for (Piece& piece : *pieces) {
      piece.text = Marked(piece);
      if (split_) {
        Take(piece, ApplyBehavior(FindMarks(piece.text), SplitBehavior::kMergedWithNext), &out);
      } else {
        out.push_back(std::move(piece));
      }
    }
    *pieces = std::move(out);
  }

 private:
  std::string Marked(const Piece& piece) const {
    std::string text;
    for (const char c : piece.text) {
      if (c == ' ') {
        text += replacement_;
      } else {
        text += c;
      }
    }
    const bool prepend = scheme_ == "always" || (scheme_ == "first" && piece.at_start);
    return prepend && !text.starts_with(replacement_) ? replacement_ + text : text;
  }

  Cover FindMarks(std::string_view text) const {
    size_t at = 0;
    const char32_t mark = NextCodePoint(replacement_, &at);
    return FindCodePoints(text, [mark](char32_t code) { return code == mark; });
  }

  std::string replacement_;
  std::string scheme_;
  bool split_;
};

class SequencePreTokenizer : public PreTokenizer {
 public:
  SequencePreTokenizer(const Json& json, bool normalized, const std::string& where) {
    CheckMembers(json, {"pretokenizers"}, where);
    for (const Json& part : Field<std::vector<Json>>(json, "pretokenizers", where)) {
      const std::string place = fmt::format("{}[{}]", where, parts_.size());
      parts_.push_back(MakePreTokenizer(part, normalized, place));
      if (parts_.back() == nullptr || !parts_.back()->LooksAtStart()) continue;
      looks_at_start_ = true;
      if (normalized && parts_.size() > 1) {
        // Several pieces may then come from the first input character.
        throw Error(ErrorKind::kInput,
                    fmt::format("{}: Metaspace with prepend_scheme 'first' behind another "
                                "pre-tokenizer and a normalizer is not understood",
                                place));
      }
    }
  }

  void Apply(std::vector<Piece>* pieces) const override {
    const size_t before = Bytes(*pieces);
    for (const auto& part : parts_) {
      if (part) part->Apply(pieces);
      CheckGrowth(before, Bytes(*pieces));
    }
  }
  bool LooksAtStart() const override { return looks_at_start_; }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> parts_;
  bool looks_at_start_ = false;
};

std::unique_ptr<PreTokenizer> MakeSplit(const Json& json, const std::string& where) {
  CheckMembers(json, {"pattern", "behavior", "invert"}, where);
  const auto pattern =
      std::make_shared<Pattern>(Pattern::FromJson(Field<Json>(json, "pattern", where), where));
  const SplitBehavior behavior =
      SplitBehaviorFromString(Field<std::string>(json, "behavior", where), where);
  if (FieldOr<bool>(json, "invert", false, where)) {
    return std::make_unique<Splitter>(
        [pattern](std::string_view text) { return Inverted(pattern->Find(text)); }, behavior);
  }
  return std::make_unique<Splitter>(
      [pattern](std::string_view text) { return pattern->Find(text); }, behavior);
}

std::unique_ptr<PreTokenizer> AtCodePoints(bool (*matches)(char32_t), SplitBehavior behavior) {
  return std::make_unique<Splitter>(
      [matches](std::string_view text) { return FindCodePoints(text, matches); }, behavior);
}

// \w+|[^\w\s]+, everything else removed.
Cover FindWordsAndSigns(std::string_view text) {
  enum Class { kSpace, kWord, kSign };
  const auto class_of = [](char32_t code) {
    return IsWord(code) ? kWord : IsWhitespace(code) ? kSpace : kSign;
  };
  Cover cover;
  Class open = kSpace;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const Class now = class_of(NextCodePoint(text, &at));
    if (!cover.empty() && now == open) {
      cover.back().end = at;
    } else {
      cover.push_back({begin, at, now == kSpace});
    }
    open = now;
  }
  return cover;
}

}  // namespace

std::unique_ptr<PreTokenizer> MakePreTokenizer(const Json& json, bool normalized,
                                               const std::string& where) {
  if (json.is_null()) return nullptr;
  const std::string type = TypeOf(json, where);
  if (type == "ByteLevel") return std::make_unique<ByteLevel>(json, where);
  if (type == "Split") return MakeSplit(json, where);
  if (type == "Metaspace") return std::make_unique<Metaspace>(json, where);
  if (type == "Sequence") return std::make_unique<SequencePreTokenizer>(json, normalized, where);
  if (type == "Digits") {
    CheckMembers(json, {"individual_digits"}, where);
    const bool each = Field<bool>(json, "individual_digits", where);
    return AtCodePoints(IsNumeric, each ? SplitBehavior::kIsolated : SplitBehavior::kContiguous);
  }
  if (type == "Punctuation") {
    CheckMembers(json, {"behavior"}, where);
    const std::string behavior = FieldOr<std::string>(json, "behavior", "Isolated", where);
    return AtCodePoints(IsPunctuation, SplitBehaviorFromString(behavior, where));
  }
  if (type == "WhitespaceSplit") {
    CheckMembers(json, {}, where);
    return AtCodePoints(IsWhitespace, SplitBehavior::kRemoved);
  }
  if (type == "Whitespace") {
    CheckMembers(json, {}, where);
    return std::make_unique<Splitter>(FindWordsAndSigns, SplitBehavior::kRemoved);
  }
  RefuseType("pre-tokenizer", type,
             {"ByteLevel", "Split", "Digits", "Metaspace", "Punctuation", "Whitespace",
              "WhitespaceSplit", "Sequence"},
             where);
}

}  // namespace evald::tok
