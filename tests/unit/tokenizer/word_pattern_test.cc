// The patterns that are matched by hand-written code, against Oniguruma.
#include "tokenizer/word_pattern.h"

#include <cstdlib>
#include <random>

#include "fixture.h"
#include "tests/unit/support/caught.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/character_classes.h"
#include "tokenizer/pattern.h"
#include "tokenizer/unicode.h"

namespace evald::tok {
namespace {

std::string Gpt4(const std::string& digits) {
  return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)" + digits +
         R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
}

const std::vector<std::string>& Expressions() {
  static const std::vector<std::string> expressions = {kGpt2Pattern, Gpt4(R"(\p{N})"),
                                                       Gpt4(R"(\p{N}{1,3})"), Gpt4(R"(\p{N}+)")};
  return expressions;
}

std::vector<std::string> Pieces(const Cover& cover, const std::string& text) {
  std::vector<std::string> pieces;
  for (const Stretch& stretch : cover) {
    EXPECT_TRUE(stretch.match);
    pieces.push_back(text.substr(stretch.begin, stretch.end - stretch.begin));
  }
  return pieces;
}

std::vector<std::string> Pieces(const WordPattern& words, const std::string& text) {
  std::vector<std::string> pieces;
  for (size_t at = 0; at < text.size();) {
    const size_t end = words.End(text, at);
    pieces.push_back(text.substr(at, end - at));
    at = end;
  }
  return pieces;
}

// Random text. Characters that matter to a pattern are more frequent than others.
std::string RandomText(std::mt19937* random) {
  static const std::vector<std::string> parts = {
      " ",          " ",      "  ",   "\n",     "\r",     "\t",     "\u00A0",     "\u3000",
      "\u2028",     "\u0085", "\x1C", "'",      "'",      "s",      "S",          "\u017F",
      "t",          "re",     "RE",   "vE",     "ll",     "Ll",     "m",          "D",
      "d",          "l",      "r",    "a",      "Z",      "\u00E9", "\u4E2D",     "\uFB06",
      "\u0149",     "\u212A", "0",    "7",      "12345",  "\u00BD", "\u0663",     "\u2167",
      "!",          "-",      "_",    "\u0301", "\u200B", "\u200D", "\U0001F642", "\U00031350",
      "\U00016D70", "\u2019"};
  std::string text;
  for (size_t n = (*random)() % 14; n > 0; --n) {
    if ((*random)() % 8 != 0) {
      text += parts[(*random)() % parts.size()];
      continue;
    }
    const char32_t code = (*random)() % 0x110000;
    if (code < 0xD800 || code >= 0xE000) AppendUtf8(&text, code);
  }
  return text;
}

// EVALD_PATTERN_TEXTS=1000000 compares that many texts for each pattern.
int TextsToCompare() {
  const char* asked = std::getenv("EVALD_PATTERN_TEXTS");
  return asked == nullptr ? 10'000 : std::atoi(asked);
}

TEST(WordPattern, AgreesWithOniguruma) {
  const int texts = TextsToCompare();
  for (const std::string& expression : Expressions()) {
    const std::optional<WordPattern> words = WordPattern::Recognize(expression);
    ASSERT_TRUE(words) << expression;
    const Pattern pattern = Pattern::FromRegex(expression);
    std::mt19937 random(7);
    for (int i = 0; i < texts; ++i) {
      const std::string text = RandomText(&random);
      if (text.empty()) continue;
      ASSERT_EQ(Pieces(*words, text), Pieces(pattern.Find(text), text)) << expression << "\n"
                                                                        << text;
    }
  }
}

TEST(WordPattern, EveryCodePointIsOfTheClassesThatOnigurumaGivesIt) {
  const std::vector<std::pair<std::string, int>> classes = {
      {R"(\p{L})", kLetter}, {R"(\p{N})", kNumber}, {R"(\s)", kSpace}};
  std::string text;
  for (char32_t code = 0; code < 0x110000; ++code) {
    if (code < 0xD800 || code >= 0xE000) AppendUtf8(&text, code);
  }
  for (const auto& [expression, bit] : classes) {
    const Cover cover = Pattern::FromRegex(expression + "+").Find(text);
    for (const Stretch& stretch : cover) {
      for (size_t at = stretch.begin; at < stretch.end;) {
        const char32_t code = NextCodePoint(text, &at);
        ASSERT_EQ((CharacterClasses()[code] & bit) != 0, stretch.match)
            << expression << " " << static_cast<uint32_t>(code);
      }
    }
  }
}

TEST(WordPattern, OthersAreNotRecognized) {
  EXPECT_FALSE(WordPattern::Recognize(""));
  EXPECT_FALSE(WordPattern::Recognize(R"(\s+)"));
  EXPECT_FALSE(WordPattern::Recognize(Gpt4(R"(\p{N}{1,4})")));
  EXPECT_FALSE(WordPattern::Recognize(Gpt4("").substr(1)));
}

TEST(Properties, TheOnesServedAreWidenedAndOthersRefused) {
  const auto found = [](const char* expression, const char* text) {
    return Pattern::FromRegex(expression).Replace(text, "_");
  };
  EXPECT_EQ(found(R"([\p{Ll}\p{M}]+)", "A\u1C8A\u0897B"), "A_B");
  EXPECT_EQ(found(R"(\p{Han})", "\U00031350a"), "_a");
  EXPECT_EQ(found(R"(\p{^Han})", "\U00031350a"), "\U00031350_");
  EXPECT_EQ(found(R"(\p{Mn})", "\U0001171E\u0301"), "\U0001171E_");
  EXPECT_EQ(found(R"(\P{Mn})", "\U0001171E\u0301"), "_\u0301");
  EXPECT_EQ(found(R"(\w+)", "a\U00031350.\U00016D70"), "_._");
  EXPECT_EQ(found(R"(\D)", "a\U00016D70"), "_\U00016D70");
  const Error e = Caught([&] { Pattern::FromRegex(R"(\p{Cn})"); });
  EXPECT_THAT(e.what(),
              testing::HasSubstr(R"(the property \p{Cn} is not understood; evald serves)"));
  EXPECT_THAT(e.what(), testing::HasSubstr("Han, "));
}

}  // namespace
}  // namespace evald::tok
