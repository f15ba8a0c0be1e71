#include "tokenizer/pre_tokenizers.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "base/find_text.h"
#include "base/jsonl.h"
#include "evald/error.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/component.h"
#include "tokenizer/pattern.h"
#include "tokenizer/unicode.h"
#include "tokenizer/word_pattern.h"

namespace evald::tok {
namespace {

// Adds the parts of `piece`. Their bytes are counted from the beginning of the piece.
void Take(const Piece& piece, const std::vector<Stretch>& parts, std::vector<Piece>* out) {
  for (const Stretch& part : parts) {
    if (part.begin == part.end) continue;
    out->push_back(
        {piece.begin + part.begin, piece.begin + part.end, piece.at_start && part.begin == 0});
  }
}

// Splits every piece at the matches of `find`.
class Splitter : public PreTokenizer {
 public:
  using Finder = std::function<Cover(std::string_view)>;

  Splitter(Finder find, SplitBehavior behavior) : find_(std::move(find)), behavior_(behavior) {}

  void Apply(Pieces* pieces) const override {
    pieces->Refine([&](const Piece& piece, std::vector<Piece>* out) {
      Take(piece, ApplyBehavior(find_(pieces->View(piece)), behavior_), out);
    });
  }

 private:
  Finder find_;
  SplitBehavior behavior_;
};

// Splits every piece into the matches of a pattern that leaves no gaps.
class WordSplitter : public PreTokenizer {
 public:
  explicit WordSplitter(WordPattern pattern) : pattern_(pattern) {}

  void Apply(Pieces* pieces) const override {
    pieces->Refine([&](const Piece& piece, std::vector<Piece>* out) {
      const std::string_view text = pieces->View(piece);
      for (size_t at = 0; at < text.size();) {
        const size_t end = pattern_.End(text, at);
        out->push_back({piece.begin + at, piece.begin + end, piece.at_start && at == 0});
        at = end;
      }
    });
  }

 private:
  WordPattern pattern_;
};

class ByteLevel : public PreTokenizer {
 public:
  ByteLevel(const Json& json, Spelling spelling, const std::string& where)
      : spelling_(spelling), add_prefix_space_(Field<bool>(json, "add_prefix_space", where)) {
    // trim_offsets changes only offsets, and evald reports none.
    CheckMembers(json, {"add_prefix_space", "trim_offsets", "use_regex"}, where);
    if (FieldOr<bool>(json, "use_regex", true, where)) {
      words_.emplace(*WordPattern::Recognize(kGpt2Pattern));
    }
  }

  void Apply(Pieces* pieces) const override {
    if (add_prefix_space_) {
      pieces->Rewrite([](std::string_view piece, bool, std::string* text) {
        if (!piece.starts_with(' ')) *text += ' ';
        *text += piece;
      });
    }
    if (words_) words_->Apply(pieces);
    if (spelling_ == Spelling::kBytes) return;
    pieces->Rewrite(
        [](std::string_view piece, bool, std::string* text) { *text += ToByteAlphabet(piece); });
  }

 private:
  Spelling spelling_;
  bool add_prefix_space_;
  std::optional<WordSplitter> words_;
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

  void Apply(Pieces* pieces) const override {
    pieces->Rewrite([this](std::string_view piece, bool at_start, std::string* text) {
      Mark(piece, at_start, text);
    });
    if (!split_) return;
    pieces->Refine([&](const Piece& piece, std::vector<Piece>* out) {
      size_t begin = piece.begin;  // each mark begins a piece
      while (begin < piece.end) {
        const std::string_view text = std::string_view(pieces->text).substr(0, piece.end);
        const size_t end = std::min(FindText(text, replacement_, begin + 1), piece.end);
        out->push_back({begin, end, piece.at_start && begin == piece.begin});
        begin = end;
      }
    });
  }

 private:
  void Mark(std::string_view piece, bool at_start, std::string* text) const {
    const bool prepend = scheme_ == "always" || (scheme_ == "first" && at_start);
    if (prepend && !piece.starts_with(' ') && !piece.starts_with(replacement_))
      *text += replacement_;
    for (size_t at = 0; at < piece.size();) {
      const size_t space = std::min(piece.find(' ', at), piece.size());
      *text += piece.substr(at, space - at);
      if (space < piece.size()) *text += replacement_;
      at = space + 1;
    }
  }

  std::string replacement_;
  std::string scheme_;
  bool split_;
};

std::unique_ptr<PreTokenizer> Make(const Json& json, bool normalized, Spelling spelling,
                                   const std::string& where);

class SequencePreTokenizer : public PreTokenizer {
 public:
  // `spelling` is the spelling of the last part's words.
  SequencePreTokenizer(const Json& json, bool normalized, Spelling spelling,
                       const std::string& where) {
    CheckMembers(json, {"pretokenizers"}, where);
    const auto parts = Field<std::vector<Json>>(json, "pretokenizers", where);
    for (const Json& part : parts) {
      const std::string place = fmt::format("{}[{}]", where, parts_.size());
      const bool last = parts_.size() + 1 == parts.size();
      parts_.push_back(Make(part, normalized, last ? spelling : Spelling::kText, place));
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

  void Apply(Pieces* pieces) const override {
    const size_t before = pieces->text.size();
    for (const auto& part : parts_) {
      if (part) part->Apply(pieces);
      CheckGrowth(before, pieces->text.size());
    }
  }
  bool LooksAtStart() const override { return looks_at_start_; }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> parts_;
  bool looks_at_start_ = false;
};

std::unique_ptr<PreTokenizer> MakeSplit(const Json& json, const std::string& where) {
  CheckMembers(json, {"pattern", "behavior", "invert"}, where);
  const Json expression = Field<Json>(json, "pattern", where);
  const auto pattern = std::make_shared<Pattern>(Pattern::FromJson(expression, where));
  const SplitBehavior behavior =
      SplitBehaviorFromString(Field<std::string>(json, "behavior", where), where);
  const bool invert = FieldOr<bool>(json, "invert", false, where);
  const bool keeps_matches =
      behavior == SplitBehavior::kIsolated || (behavior == SplitBehavior::kRemoved && invert);
  if (keeps_matches && expression.contains("Regex")) {
    const auto words = WordPattern::Recognize(expression["Regex"].get_ref<const std::string&>());
    if (words) return std::make_unique<WordSplitter>(*words);
  }
  if (invert) {
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

// \w+|[^\w\s]+. Everything else is removed.
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

std::unique_ptr<PreTokenizer> Make(const Json& json, bool normalized, Spelling spelling,
                                   const std::string& where) {
  if (json.is_null()) return nullptr;
  const std::string type = TypeOf(json, where);
  if (type == "ByteLevel") return std::make_unique<ByteLevel>(json, spelling, where);
  if (type == "Split") return MakeSplit(json, where);
  if (type == "Metaspace") return std::make_unique<Metaspace>(json, where);
  if (type == "Sequence") {
    return std::make_unique<SequencePreTokenizer>(json, normalized, spelling, where);
  }
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

bool EndsInByteLevel(const Json& json) {
  if (!json.is_object()) return false;
  const std::string type = json.value("type", "");
  if (type != "Sequence") return type == "ByteLevel";
  const auto parts = json.find("pretokenizers");
  return parts != json.end() && parts->is_array() && !parts->empty() &&
         EndsInByteLevel(parts->back());
}

}  // namespace

PreTokenization MakePreTokenizer(const Json& json, bool normalized, const std::string& where) {
  PreTokenization out;
  if (EndsInByteLevel(json)) out.spelling = Spelling::kBytes;
  out.splitter = Make(json, normalized, out.spelling, where);
  return out;
}

}  // namespace evald::tok
