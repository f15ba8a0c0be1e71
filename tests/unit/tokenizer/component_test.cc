// Single components against the tokenizers library (components.jsonl).
#include <random>

#include "fixture.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/decoders.h"
#include "tokenizer/nfc_inert.h"
#include "tokenizer/normalizers.h"
#include "tokenizer/pattern.h"
#include "tokenizer/pre_tokenizers.h"
#include "tokenizer/unicode.h"

namespace evald::tok {
namespace {

// Calls `check` for each line that has the member `part`.
void ForEachComponent(const std::string& part, const std::function<void(const Json&)>& check) {
  size_t seen = 0;
  ForEachJsonLine(GoldenFolder() / "components.jsonl", [&](size_t number, const Json& line) {
    if (!line.contains(part)) return;
    SCOPED_TRACE(number);
    SCOPED_TRACE(ToLine(line));
    check(line);
    ++seen;
  });
  EXPECT_GE(seen, 100u);
}

TEST(Components, Normalizers) {
  ForEachComponent("normalizer", [](const Json& line) {
    const auto normalizer = MakeNormalizer(line["normalizer"], "normalizer");
    EXPECT_EQ(normalizer->Apply(line["in"]), line["out"].get<std::string>());
  });
}

TEST(Components, PreTokenizers) {
  ForEachComponent("pre_tokenizer", [](const Json& line) {
    const PreTokenization made = MakePreTokenizer(line["pre_tokenizer"], false, "pre_tokenizer");
    Pieces pieces;
    pieces.Reset(line["in"].get_ref<const std::string&>(), true);
    made.splitter->Apply(&pieces);
    std::vector<std::string> texts;
    for (const Piece& piece : pieces.list) {
      const std::string text(pieces.View(piece));
      texts.push_back(made.spelling == Spelling::kBytes ? ToByteAlphabet(text) : text);
    }
    EXPECT_EQ(texts, line["out"].get<std::vector<std::string>>());
  });
}

TEST(Components, Decoders) {
  ForEachComponent("decoder", [](const Json& line) {
    const auto decoder = MakeDecoder(line["decoder"], "decoder");
    std::vector<std::string> tokens = line["in"];
    decoder->Apply(&tokens);
    std::string text;
    for (const std::string& token : tokens) text += token;
    EXPECT_EQ(text, line["out"].get<std::string>());
  });
}

// Expressions under (?i), against the library (tests/oracle/tokenizer_patterns.py).
TEST(Components, PatternsWithoutRegardToCase) {
  size_t seen = 0;
  ForEachJsonLine(GoldenFolder() / "patterns.jsonl", [&](size_t number, const Json& line) {
    SCOPED_TRACE(number);
    SCOPED_TRACE(ToLine(line));
    const Pattern pattern = Pattern::FromJson({{"Regex", line["pattern"]}}, "pattern");
    const std::string text = line["in"];
    std::vector<std::string> pieces;
    for (const Stretch& stretch : pattern.Find(text)) {
      if (stretch.begin < stretch.end) {
        pieces.push_back(text.substr(stretch.begin, stretch.end - stretch.begin));
      }
    }
    EXPECT_EQ(pieces, line["out"].get<std::vector<std::string>>());
    ++seen;
  });
  EXPECT_GE(seen, 200u);
}

// The library's normal forms are those of Unicode 9. Later characters stay unchanged.
TEST(Components, NormalFormsAreOfUnicode9) {
  EXPECT_EQ(Normalize("e\u07FD\u0301", NormalForm::kNfc), "e\u07FD\u0301");
  EXPECT_EQ(Normalize("\u32FF", NormalForm::kNfkc), "\u32FF");
  EXPECT_EQ(Normalize("e\u0323\u0301", NormalForm::kNfc), "\u1EB9\u0301");
  EXPECT_FALSE(IsMark(0x0898));
  EXPECT_TRUE(IsMark(0x1CF2));
}

// NFC leaves a text unchanged if IsSurelyNfc says so. NFD of the text, composed again, gives the
// same text.
TEST(Components, WhatIsSurelyNfcIsNfc) {
  std::mt19937 random(5);
  int alone = 0, texts = 0;
  for (char32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text;
    AppendUtf8(&text, code);
    if (!IsSurelyNfc(text)) continue;
    ++alone;
    ASSERT_EQ(Normalize(Normalize(text, NormalForm::kNfd), NormalForm::kNfc), text)
        << static_cast<uint32_t>(code);
  }
  EXPECT_GT(alone, 1'000'000);
  for (int i = 0; i < 100'000; ++i) {
    std::string text;
    for (size_t n = 2 + random() % 4; n > 0; --n) {
      const char32_t code = random() % 3 == 0 ? random() % 0x3000 : random() % 0x11000;
      if (code < 0xD800 || code >= 0xE000) AppendUtf8(&text, code);
    }
    const bool surely = IsSurelyNfc(text);
    texts += surely ? 1 : 0;
    if (!surely) continue;
    ASSERT_EQ(Normalize(Normalize(text, NormalForm::kNfd), NormalForm::kNfc), text) << text;
  }
  EXPECT_GT(texts, 10'000);
  EXPECT_FALSE(IsSurelyNfc("e\u0301"));
  EXPECT_FALSE(IsSurelyNfc("\u1100\u1161"));
  EXPECT_FALSE(IsSurelyNfc("\u212B"));
  EXPECT_TRUE(IsSurelyNfc("\u00E9\uAC00\u4E2D \u07FD"));
}

// The library's punctuation is that of Unicode 8. Its words, numbers and lower cases are those of
// versions 16 and 17.
TEST(Components, ClassesOfOtherVersionsOfUnicode) {
  EXPECT_TRUE(IsPunctuation(0x166D));
  EXPECT_FALSE(IsPunctuation(0x2E43));
  EXPECT_TRUE(IsPunctuation(0x2E42));
  EXPECT_TRUE(IsNumeric(0x16FF4));
  EXPECT_FALSE(IsNumeric(0x16FF7));
  EXPECT_TRUE(IsWord(0x897));
  EXPECT_EQ(Lowercase("\uA7CB\U00010D50\U00016EB8"), "\u0264\U00010D70\U00016ED3");
}

// U+31350 is a letter since Unicode 15, U+16D70 a digit since 16.
TEST(Components, PatternsKnowTheLettersOfUnicode16) {
  const auto found = [](const char* expression, const char* text) {
    return Pattern::FromRegex(expression).Replace(text, "_");
  };
  EXPECT_EQ(found("\\p{L}+", "a\U00031350b1"), "_1");
  EXPECT_EQ(found("[^\\s\\p{L}\\p{N}]", "\U00031350\U00016D70."), "\U00031350\U00016D70_");
  EXPECT_EQ(found("[^\\r\\n\\p{L}\\p{N}]?\\p{L}+", ".\U00031350a1"), "_1");
  EXPECT_EQ(found("\\P{L}", "\U00031350\U00016D70"), "\U00031350_");
  EXPECT_EQ(found("\\\\p{1}", "\\p"), "_");
}

TEST(Components, TheByteAlphabetIsOneToOne) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string spelled = ToByteAlphabet(std::string(1, static_cast<char>(byte)));
    size_t at = 0;
    EXPECT_EQ(FromByteAlphabet(NextCodePoint(spelled, &at)), byte);
    EXPECT_EQ(at, spelled.size());
  }
  EXPECT_EQ(ToByteAlphabet(" "), "Ġ");
  EXPECT_EQ(FromByteAlphabet(U' '), -1);
}

TEST(Components, AStripDecoderMayTakeAllOfAToken) {
  const auto strip =
      MakeDecoder({{"type", "Strip"}, {"content", "a"}, {"start", 5}, {"stop", 5}}, "decoder");
  std::vector<std::string> tokens = {"aaa", "", "a"};
  strip->Apply(&tokens);
  EXPECT_EQ(tokens, (std::vector<std::string>{"", "", ""}));
}

}  // namespace
}  // namespace evald::tok
