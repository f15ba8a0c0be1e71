// Added tokens and post-processors. Every expectation is the result of tokenizers 0.23.3.
#include <sys/resource.h>

#include "base/clock.h"
#include "base/memory_limits.h"
#include "fixture.h"

namespace evald {
namespace {

using testing::HasSubstr;

Json Added(int id, const char* content, bool normalized, bool special) {
  return {{"id", id},        {"content", content}, {"single_word", false},    {"lstrip", false},
          {"rstrip", false}, {"special", special}, {"normalized", normalized}};
}

// The small tokenizer (ids 0 to 5) with these added tokens.
std::unique_ptr<Tokenizer> With(const std::vector<Json>& added, const char* normalizer = nullptr) {
  Json json = SmallTokenizer();
  json["added_tokens"] = added;
  if (normalizer != nullptr) json["normalizer"] = {{"type", normalizer}};
  return Small(json);
}

// The library spells such a token in the normalizer's form and looks up that form among the special
// tokens. So the token is not left out.
TEST(AddedTokens, ANormalizedTokenIsDecodedAsTheNormalizerSpellsIt) {
  const auto tokenizer =
      With({Added(6, "<TOOL>", true, true), Added(7, "<t>", true, true)}, "Lowercase");
  EXPECT_EQ(tokenizer->Encode("a<tool>B", false), (Ids{0, 6, 1}));
  EXPECT_EQ(tokenizer->Decode({6, 0, 7}, false), "<tool>a<t>");
  EXPECT_EQ(tokenizer->Decode({6, 0, 7}, true), "<tool>a");
  EXPECT_EQ(tokenizer->Spelling(6), "<TOOL>");
  EXPECT_EQ(tokenizer->TokenId("<TOOL>"), 6);
}

TEST(AddedTokens, WithoutANormalizerTheContentIsDecoded) {
  const auto tokenizer = With({Added(6, "<TOOL>", true, true)});
  EXPECT_EQ(tokenizer->Decode({6, 0}, false), "<TOOL>a");
  EXPECT_EQ(tokenizer->Decode({6, 0}, true), "a");
}

TEST(AddedTokens, TwoThatAreTheSameTextOnceNormalizedAreRefused) {
  Json json = SmallTokenizer();
  json["added_tokens"] = {Added(6, "XY", true, false), Added(7, "xy", true, false)};
  json["normalizer"] = {{"type", "Lowercase"}};
  EXPECT_THAT(Refusal(json.dump()),
              HasSubstr("added token 'xy': another added token is the same text once normalized"));
}

// The next id is the number of the model's tokens. It is counted and not looked up.
TEST(AddedTokens, IdsWhereTheVocabularyHasHoles) {
  Json json = SmallTokenizer();
  json["model"]["vocab"] = {{"a", 0}, {"b", 1}, {"c", 5}};
  json["model"]["merges"] = Json::array();
  json["added_tokens"] = {Added(5, "c", false, false), Added(3, "<x>", false, false)};
  EXPECT_EQ(Small(json)->TokenId("<x>"), 3);
}

// The longest token counts. A token may be the beginning of another, and bytes above 0x7f are in
// order, too.
TEST(AddedTokens, TheLongestOfManyIsFound) {
  const auto tokenizer = With({Added(6, "<t", false, false), Added(7, "<t1", false, false),
                               Added(8, "<t1>>", false, false), Added(9, "<u", false, false),
                               Added(10, "<\u00e9>", false, false), Added(11, "<", false, false)});
  EXPECT_EQ(tokenizer->Encode("<t1>>a<t1b<tb<<ub", false), (Ids{8, 0, 7, 1, 6, 1, 11, 9, 1}));
  EXPECT_EQ(tokenizer->Encode("<\u00e9>a<", false), (Ids{10, 0, 11}));
}

// A token of 10 MB and 100,000 tokens: memory and time in proportion to their bytes.
TEST(AddedTokens, ManyAndLongOnesTakeMemoryAndTimeInProportion) {
  const auto peak = [] {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss >> 10;
  };
  const int64_t before = peak();
  const int64_t begin = MonotonicMicros();
  const std::string token = "<" + std::string(10'000'000, 'x') + ">";
  const auto one = With({Added(6, token.c_str(), false, true)});
  EXPECT_EQ(one->Encode("a" + token + "b", false), (Ids{0, 6, 1}));
  if (LimitsOwnMemory()) {  // sanitizers take more
    EXPECT_LT(peak() - before, 300) << "MiB";
  }
  std::vector<Json> many;
  for (int i = 0; i < 100'000; ++i) {
    many.push_back(Added(6 + i, ("<token_" + std::to_string(i) + ">").c_str(), false, true));
  }
  const auto all = With(many);
  EXPECT_EQ(all->Encode("a<token_99999><token_7>b", false), (Ids{0, 100'005, 13, 1}));
  if (LimitsOwnMemory()) {  // sanitizers take more
    EXPECT_LT(MonotonicMicros() - begin, 20'000'000);
  }
}

Json Special(const char* id) { return {{"SpecialToken", {{"id", id}, {"type_id", 0}}}}; }
Json Text(const char* id) { return {{"Sequence", {{"id", id}, {"type_id", 0}}}}; }

Json Template(Json single, Json pair) {
  const Json tokens = {{"b", {{"id", "b"}, {"ids", {1}}, {"tokens", {"b"}}}},
                       {"c", {{"id", "c"}, {"ids", {2}}, {"tokens", {"c"}}}}};
  return {{"type", "TemplateProcessing"},
          {"single", std::move(single)},
          {"pair", std::move(pair)},
          {"special_tokens", tokens}};
}

std::unique_ptr<Tokenizer> WithProcessors(const Json& processors) {
  Json json = SmallTokenizer();
  json["post_processor"] = {{"type", "Sequence"}, {"processors", processors}};
  return Small(json);
}

// The second template sees the parts of the first as two texts.
TEST(PostProcessors, ASecondTemplateSeesAPair) {
  const Json before =
      Template(Json::array({Special("b"), Text("A")}),
               Json::array({Special("b"), Text("A"), Special("b"), Text("B"), Special("c")}));
  const Json after = Template(Json::array({Text("A"), Special("c")}),
                              Json::array({Text("B"), Text("A"), Special("c")}));
  const auto twice = WithProcessors(Json::array({before, before}));
  EXPECT_EQ(twice->Encode("a", true), (Ids{1, 1, 1, 0, 2}));
  EXPECT_EQ(twice->Encode("a", false), (Ids{0}));
  const auto turned = WithProcessors(Json::array({before, after}));
  EXPECT_EQ(turned->Encode("a", true), (Ids{0, 1, 2}));
  EXPECT_EQ(turned->Encode("a", false), (Ids{0}));
}

TEST(PostProcessors, ATextMayStandTwiceOrNotAtAll) {
  const Json pair = Json::array({Text("A"), Text("B")});
  const auto twice = WithProcessors(
      Json::array({Template(Json::array({Text("A"), Special("b"), Text("A")}), pair)}));
  EXPECT_EQ(twice->Encode("ac", true), (Ids{0, 2, 1, 0, 2}));
  EXPECT_EQ(twice->Encode("ac", false), (Ids{0, 2, 0, 2}));
  const auto none = WithProcessors(Json::array({Template(Json::array({Special("b")}), pair)}));
  EXPECT_EQ(none->Encode("ac", true), (Ids{1}));
  EXPECT_EQ(none->Encode("ac", false), (Ids{}));
}

}  // namespace
}  // namespace evald
