// Files that are damaged, hostile, or have settings that evald does not know. They are refused by
// name, and never approximated.
#include "fixture.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

using testing::HasSubstr;

std::string RefusedJson(const Json& json) { return Refusal(json.dump()); }

std::string WithPart(const std::string& part, const Json& value) {
  Json json = SmallTokenizer();
  json[part] = value;
  return RefusedJson(json);
}

std::string WithModel(const std::string& key, const Json& value) {
  Json json = SmallTokenizer();
  json["model"][key] = value;
  return RefusedJson(json);
}

TEST(Refusal, TheSmallTokenizerIsAccepted) { EXPECT_EQ(RefusedJson(SmallTokenizer()), ""); }

TEST(Refusal, ComponentsNotUnderstoodAreNamed) {
  EXPECT_THAT(WithPart("normalizer", {{"type", "Precompiled"}}),
              HasSubstr("the normalizer 'Precompiled' is not understood; evald serves NFC"));
  EXPECT_THAT(WithPart("pre_tokenizer", {{"type", "UnicodeScripts"}}),
              HasSubstr("pre-tokenizer 'UnicodeScripts'"));
  EXPECT_THAT(WithPart("post_processor", {{"type", "BertProcessing"}}),
              HasSubstr("post-processor 'BertProcessing'"));
  EXPECT_THAT(WithPart("decoder", {{"type", "WordPiece"}}), HasSubstr("decoder 'WordPiece'"));
  EXPECT_THAT(WithModel("type", "Unigram"), HasSubstr("model 'Unigram' is not understood"));
  EXPECT_THAT(WithModel("dropout", 0.1), HasSubstr("dropout"));
  EXPECT_THAT(WithPart("version", "2.0"), HasSubstr("version '2.0'"));
}

TEST(Refusal, ANestedComponentIsFoundAndPlaced) {
  EXPECT_THAT(WithPart("normalizer", {{"type", "Sequence"},
                                      {"normalizers", {{{"type", "NFC"}}, {{"type", "Nmt"}}}}}),
              HasSubstr("small.json: normalizer[1]: the normalizer 'Nmt'"));
}

TEST(Refusal, SettingsNotUnderstoodAreNamed) {
  EXPECT_THAT(WithPart("normalizer", {{"type", "NFC"}, {"twice", true}}), HasSubstr("'twice'"));
  EXPECT_THAT(WithModel("merge_backwards", true), HasSubstr("'merge_backwards'"));
  EXPECT_THAT(WithPart("post_tokenizer", nullptr), HasSubstr("'post_tokenizer'"));
  EXPECT_THAT(WithPart("pre_tokenizer", {{"type", "Split"},
                                         {"pattern", {{"String", " "}}},
                                         {"behavior", "Eaten"},
                                         {"invert", false}}),
              HasSubstr("split behavior 'Eaten'"));
  EXPECT_THAT(WithPart("pre_tokenizer",
                       {{"type", "Metaspace"}, {"replacement", "_"}, {"add_prefix_space", false}}),
              HasSubstr("add_prefix_space"));
}

TEST(Refusal, WrongTypesAreNamed) {
  EXPECT_THAT(WithPart("normalizer", "NFC"), HasSubstr("expected an object with the key 'type'"));
  EXPECT_THAT(WithPart("normalizer", {{"type", "Prepend"}}), HasSubstr("'prepend' is absent"));
  EXPECT_THAT(WithPart("added_tokens", {{"a", 1}}), HasSubstr("added_tokens"));
  EXPECT_THAT(WithPart("added_tokens", {{{"id", "x"}, {"content", "y"}}}), HasSubstr("'id'"));
  EXPECT_THAT(WithModel("merges", "a b"), HasSubstr("merges: found string, expected a list"));
  EXPECT_THAT(WithModel("vocab", {{"a", "0"}}), HasSubstr("expected an id"));
  EXPECT_THAT(WithModel("vocab", {{"a", {{"b", 0}}}}), HasSubstr("expected a number"));
  EXPECT_THAT(WithModel("vocab", Json::array()), HasSubstr("the vocab has no tokens"));
  EXPECT_THAT(WithPart("model", nullptr), HasSubstr("model"));
  EXPECT_THAT(WithPart("pre_tokenizer",
                       {{"type", "Metaspace"}, {"replacement", "ab"}, {"prepend_scheme", "never"}}),
              HasSubstr("expected one character"));
}

TEST(Refusal, MergesThatNameNoToken) {
  EXPECT_THAT(WithModel("merges", Json::array({{"a", "x"}})),
              HasSubstr("merges[0]: 'a' + 'x': the token 'x' is not in the vocab"));
  EXPECT_THAT(WithModel("merges", Json::array({{"c", "a"}})), HasSubstr("the token 'ca'"));
  EXPECT_THAT(WithModel("merges", Json::array({"a b c"})), HasSubstr("merges[0]: found"));
  EXPECT_THAT(WithModel("merges", Json::array({7})), HasSubstr("merges[0]: found 7"));
}

TEST(Refusal, IdsThatCannotBe) {
  EXPECT_THAT(WithModel("vocab", {{"a", -1}}), HasSubstr("-1"));
  EXPECT_THAT(WithModel("vocab", {{"a", 1LL << 40}}), HasSubstr("expected an id"));
  EXPECT_THAT(WithModel("vocab", {{"a", 1}, {"b", 1}}), HasSubstr("share the id 1"));
  EXPECT_THAT(WithPart("added_tokens", {{{"id", 9}, {"content", "<x>"}}}),
              HasSubstr("has the id 9, but the tokenizers library would give it 6"));
}

TEST(Refusal, BadExpressionsAreQuoted) {
  EXPECT_THAT(WithPart("normalizer",
                       {{"type", "Replace"}, {"pattern", {{"Regex", "(a"}}}, {"content", ""}}),
              HasSubstr("(a"));
}

TEST(Refusal, ExpressionsThatDependOnTheVersionOfUnicode) {
  const auto refused = [](const std::string& expression) {
    return WithPart("normalizer",
                    {{"type", "Replace"}, {"pattern", {{"Regex", expression}}}, {"content", ""}});
  };
  EXPECT_THAT(refused("x[[:punct:]]+"), HasSubstr("the class [:punct:] is not understood"));
  EXPECT_THAT(refused("[a[:^alpha:]]"), HasSubstr("the class [:alpha:] is not understood"));
  EXPECT_THAT(refused(R"(\X)"), HasSubstr(R"(\X is not understood)"));
  EXPECT_THAT(refused(R"((?i)[\p{Greek}\p{Lydian}])"), HasSubstr("\\p{Lydian}"));
  EXPECT_THAT(refused(std::string(100'000, '[')), HasSubstr("nested deeper than 100 levels"));
  EXPECT_EQ(refused("[[:space:]]|[.,:]"), "");
  for (const char* open : {"(?i", "(?i)[", "(?i)[^", "(", "(?", "(?#", "(?x)#", "(?i)\\", "[]"}) {
    refused(open);  // nothing is read beyond its end
  }
}

TEST(Refusal, TemplatesThatLeaveMoreThanTwoParts) {
  const auto special = [](const char* id) {
    return Json({{"SpecialToken", {{"id", id}, {"type_id", 0}}}});
  };
  const auto text = [](const char* id) {
    return Json({{"Sequence", {{"id", id}, {"type_id", 0}}}});
  };
  const Json tokens = {{"a", {{"id", "a"}, {"ids", {0}}, {"tokens", {"a"}}}}};
  const auto made = [&](Json single, Json pair) {
    return Json({{"type", "TemplateProcessing"},
                 {"single", std::move(single)},
                 {"pair", std::move(pair)},
                 {"special_tokens", tokens}});
  };
  const Json pair = Json::array({text("A"), text("B")});
  const Json around = made(Json::array({special("a"), text("A"), special("a")}), pair);
  EXPECT_THAT(WithPart("post_processor",
                       {{"type", "Sequence"}, {"processors", Json::array({around, around})}}),
              HasSubstr("the templates before it leave 3 parts, expected one or two"));
  EXPECT_THAT(WithPart("post_processor", made(Json::array({text("B")}), pair)),
              HasSubstr("names the sequence 'B', expected one of A"));
}

TEST(Refusal, BrokenJson) {
  const std::string whole = SmallTokenizer().dump();
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(Refusal(whole.substr(0, size)), HasSubstr("small.json")) << size;
  }
  EXPECT_THAT(Refusal("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(Refusal("{\"model\": 1e999}"), HasSubstr("small.json"));
}

TEST(Refusal, DeepNestingDoesNotOverflowTheStack) {
  const std::string deep = std::string(1'000'000, '[');
  EXPECT_THAT(Refusal(deep), HasSubstr("deeper than 64"));
  std::string sequence = R"({"type": "Sequence", "normalizers": [)";
  std::string text = R"({"normalizer": )";
  for (int i = 0; i < 100'000; ++i) text += sequence;
  EXPECT_THAT(Refusal(text), HasSubstr("deeper than 64"));
}

TEST(Refusal, ManyMembersDoNotTakeForever) {
  std::string text = "{";
  for (int i = 0; i < 300'000; ++i) text += "\"k" + std::to_string(i) + "\": 0,";
  EXPECT_THAT(Refusal(text + "\"z\": 0}"), HasSubstr("more than 10000 members"));
}

TEST(Refusal, RulesThatExplode) {
  Json doubled = {{"type", "Sequence"}, {"normalizers", Json::array()}};
  Json spelled = {{"type", "Sequence"}, {"pretokenizers", Json::array()}};
  for (int i = 0; i < 60; ++i) {
    doubled["normalizers"].push_back(
        {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}});
    spelled["pretokenizers"].push_back(
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}});
  }
  Json json = SmallTokenizer();
  json["normalizer"] = doubled;
  EXPECT_THROW(Small(json)->Encode("a", false), Error);
  json = SmallTokenizer();
  json["pre_tokenizer"] = spelled;
  EXPECT_THROW(Small(json)->Encode("é", false), Error);
  json = SmallTokenizer();
  doubled["decoders"] = doubled["normalizers"];
  doubled.erase("normalizers");
  json["decoder"] = doubled;
  EXPECT_THROW(Small(json)->Decode({0}, false), Error);
}

// Searches that step back without end are given up. The error names the pattern's place.
TEST(Refusal, PatternsThatBacktrackWithoutEnd) {
  const std::string text = std::string(60, 'a') + "!";
  const auto refused = [&](const std::string& part, const Json& value) -> std::string {
    Json json = SmallTokenizer();
    json[part] = value;
    const auto tokenizer = Small(json);
    EXPECT_EQ(tokenizer->Encode("ab", false), (Ids{3}));
    return RefusalOf([&] { tokenizer->Encode(text, false); });
  };
  const Json pattern = {{"Regex", R"((a|a?)+$)"}};
  const std::string split = refused(
      "pre_tokenizer",
      {{"type", "Split"}, {"pattern", pattern}, {"behavior", "Isolated"}, {"invert", false}});
  EXPECT_THAT(split,
              HasSubstr("small.json: pre_tokenizer: pattern: regular expression '(a|a?)+$'"));
  EXPECT_THAT(split, HasSubstr("given up after 50000000 steps"));
  EXPECT_THAT(split, HasSubstr("without a repetition inside a repetition"));
  const std::string replace =
      refused("normalizer",
              {{"type", "Sequence"},
               {"normalizers",
                Json::array({{{"type", "Replace"}, {"pattern", pattern}, {"content", "x"}}})}});
  EXPECT_THAT(replace, HasSubstr("small.json: normalizer[0]: pattern: "));
}

// Merges whose result is one of their own parts still come to an end.
TEST(Refusal, MergesThatGoRoundInACircle) {
  Json json = SmallTokenizer();
  json["model"]["continuing_subword_prefix"] = "#";
  json["model"]["vocab"] = {{"a", 0}, {"#", 1}, {"#a", 2}, {"##", 3}};
  json["model"]["merges"] = Json::array({{"a", "#"}, {"#", "#"}, {"a", "##"}});
  EXPECT_THAT(Refusal(json.dump()),
              HasSubstr("merges[2]: 'a' + '##': the token 'a#' is not in the vocab"));
  json["model"]["merges"] = Json::array({{"a", "#"}, {"#", "#"}});
  EXPECT_EQ(Small(json)->Encode("a" + std::string(5000, '#'), false).size(), 5001u);
  json["model"]["vocab"]["##"] = 4;
  EXPECT_LE(Small(json)->Encode(std::string(5000, '#'), false).size(), 5000u);
}

TEST(Refusal, TextThatIsNotUtf8) {
  EXPECT_THROW(Small(SmallTokenizer())->Encode("a\xFF", false), Error);
}

TEST(Refusal, AFolderWithoutATokenizer) {
  const TemporaryFolder folder;
  const Error e = Caught([&] { Tokenizer::Load(folder.path()); });
  EXPECT_EQ(e.kind(), ErrorKind::kInput);
  EXPECT_THAT(e.what(), HasSubstr("no tokenizer.json, found no tokenizer.model either"));
  EXPECT_THAT(e.what(), HasSubstr("save_pretrained"));
}

TEST(Refusal, AFolderWithOnlyASentencePieceModelSaysHowToConvertIt) {
  const TemporaryFolder folder;
  WriteFileAtomic(folder.path() / "tokenizer.model", "\n\x0e\n\x05<unk>");
  const Error e = Caught([&] { Tokenizer::Load(folder.path()); });
  EXPECT_EQ(e.kind(), ErrorKind::kInput);
  EXPECT_THAT(e.what(),
              HasSubstr("found a SentencePiece tokenizer.model, which evald does not read"));
  EXPECT_THAT(e.what(), HasSubstr("python3 -c \"from transformers import AutoTokenizer; "
                                  "AutoTokenizer.from_pretrained('" +
                                  folder.path().string() + "').save_pretrained('"));
}

}  // namespace
}  // namespace evald
