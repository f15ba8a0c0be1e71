#include <ctime>
#include <random>

#include "fixture.h"

namespace evald {
namespace {

TEST(Bpe, MergesTheLowestRankFirst) {
  const auto tokenizer = Small(SmallTokenizer());
  EXPECT_EQ(tokenizer->Encode("abc", false), (Ids{4}));
  EXPECT_EQ(tokenizer->Encode("bcab", false), (Ids{5, 3}));
  // without an unknown token, x and y are lost
  EXPECT_EQ(tokenizer->Encode("xaby", false), (Ids{3}));
  EXPECT_EQ(tokenizer->Encode("", false), Ids());
  EXPECT_EQ(tokenizer->vocabulary_size(), 6);
  EXPECT_EQ(tokenizer->TokenId("ab"), 3);
  EXPECT_EQ(tokenizer->TokenId("ba"), -1);
  EXPECT_EQ(tokenizer->Spelling(4), "abc");
  EXPECT_EQ(tokenizer->Spelling(-1), "");
}

TEST(Bpe, IgnoreMergesTakesWholeWords) {
  Json json = SmallTokenizer();
  json["model"]["vocab"]["ca"] = 6;
  EXPECT_EQ(Small(json)->Encode("ca", false), (Ids{2, 0}));
  json["model"]["ignore_merges"] = true;
  EXPECT_EQ(Small(json)->Encode("ca", false), (Ids{6}));
}

TEST(Bpe, UnknownCharacters) {
  Json json = SmallTokenizer();
  json["model"]["unk_token"] = "<unk>";
  EXPECT_EQ(Small(json)->Encode("ab", false), (Ids{3}));
  EXPECT_THROW(Small(json)->Encode("xab", false), Error);
  json["model"]["vocab"]["<unk>"] = 6;
  EXPECT_EQ(Small(json)->Encode("xyab!", false), (Ids{6, 6, 3, 6}));
  json["model"]["fuse_unk"] = true;
  EXPECT_EQ(Small(json)->Encode("xyab!", false), (Ids{6, 3, 6}));
}

TEST(Bpe, ByteFallbackNeedsEveryByteOfACharacter) {
  Json json = SmallTokenizer();
  json["model"]["byte_fallback"] = true;
  json["model"]["unk_token"] = "a";
  json["model"]["vocab"]["<0xC3>"] = 6;
  EXPECT_EQ(Small(json)->Encode("é", false), (Ids{0}));
  json["model"]["vocab"]["<0xA9>"] = 7;
  EXPECT_EQ(Small(json)->Encode("é", false), (Ids{6, 7}));
}

// Plain merging, one pair at a time. The priority queue must agree with it.
Ids MergeSlowly(const std::string& text, const Json& model) {
  std::vector<std::string> symbols;
  for (const char c : text) symbols.emplace_back(1, c);
  while (true) {
    size_t best_rank = model["merges"].size();
    size_t best = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      for (size_t rank = 0; rank < best_rank; ++rank) {
        const Json& merge = model["merges"][rank];
        if (merge[0] == symbols[i] && merge[1] == symbols[i + 1]) {
          best_rank = rank;
          best = i;
        }
      }
    }
    if (best_rank == model["merges"].size()) break;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
  Ids ids;
  for (const std::string& symbol : symbols) ids.push_back(model["vocab"][symbol]);
  return ids;
}

TEST(Bpe, AgreesWithPlainMerging) {
  std::mt19937 random(3);
  for (int round = 0; round < 30; ++round) {
    Json json = SmallTokenizer();
    json["model"]["vocab"] = {{"a", 0}, {"b", 1}, {"c", 2}};
    json["model"]["merges"] = Json::array();
    std::vector<std::string> tokens = {"a", "b", "c"};
    while (tokens.size() < 25) {
      const std::string left = tokens[random() % tokens.size()];
      const std::string right = tokens[random() % tokens.size()];
      if (json["model"]["vocab"].contains(left + right)) continue;
      json["model"]["merges"].push_back({left, right});
      json["model"]["vocab"][left + right] = tokens.size();
      tokens.push_back(left + right);
    }
    const auto tokenizer = Small(json);
    for (int i = 0; i < 40; ++i) {
      std::string text;
      for (size_t n = random() % 30; n > 0; --n) text += static_cast<char>('a' + random() % 3);
      EXPECT_EQ(tokenizer->Encode(text, false), MergeSlowly(text, json["model"])) << text;
    }
  }
}

// A word of 2 MB: quadratic merging would take hours.
TEST(Bpe, LongWordsAreNoTrouble) {
  const auto tokenizer = Small(SmallTokenizer());
  std::string text;
  for (int i = 0; i < 700'000; ++i) text += "abc";
  // Processor time is measured, since a busy machine may take any time on the clock. Quadratic
  // merging would take hours.
  const std::clock_t start = std::clock();
  EXPECT_EQ(tokenizer->Encode(text, false), Ids(700'000, 4));
  EXPECT_LT(std::clock() - start, 60 * CLOCKS_PER_SEC);
}

// Text is divided before SentencePiece's mark only if no merge crosses that border.
TEST(Bpe, MergesMayCrossAMark) {
  Json json = SmallTokenizer();
  json["model"]["vocab"] = {
      {"a", 0}, {"\u2581", 1}, {"\u2581a", 2}, {"\u2581\u2581", 3}, {"a\u2581", 4}};
  json["model"]["merges"] = Json::array({{"\u2581", "a"}, {"\u2581", "\u2581"}});
  const std::string text = "a\u2581a\u2581\u2581\u2581a\u2581";
  EXPECT_EQ(Small(json)->Encode(text, false), (Ids{0, 2, 3, 2, 1}));
  json["model"]["merges"] = Json::array({{"a", "\u2581"}, {"\u2581", "a"}});
  EXPECT_EQ(Small(json)->Encode(text, false), (Ids{4, 4, 1, 1, 4}));
}

// Words of every length below and above the limits of the cache's two tables, met for the first
// time and met again.
TEST(Bpe, TheCacheKeepsWordsOfEveryLengthApart) {
  const auto tokenizer = Small(SmallTokenizer());
  std::mt19937 random(4);
  for (size_t size = 1; size < 200; ++size) {
    std::string text;
    for (size_t i = 0; i < size; ++i) text += static_cast<char>('a' + random() % 3);
    std::string other = text;
    other[size - 1] = text[size - 1] == 'a' ? 'b' : 'a';
    for (const std::string& word : {text, other}) {
      const Ids first = tokenizer->Encode(word, false);
      EXPECT_EQ(first, Small(SmallTokenizer())->Encode(word, false)) << word;
      EXPECT_EQ(tokenizer->Encode(word, false), first) << word;
      EXPECT_EQ(tokenizer->Decode(first, false), word);
    }
  }
}

// More different words than the cache holds.
TEST(Bpe, TheCacheMayOverflow) {
  const auto tokenizer = Small(SmallTokenizer());
  for (int i = 0; i < 100'000; ++i) {
    std::string text;
    for (int n = i; n > 0; n /= 3) text += static_cast<char>('a' + n % 3);
    const Ids first = tokenizer->Encode(text, false);
    EXPECT_EQ(tokenizer->Encode(text, false), first);
    EXPECT_EQ(tokenizer->Decode(first, false), text);
  }
}

}  // namespace
}  // namespace evald
