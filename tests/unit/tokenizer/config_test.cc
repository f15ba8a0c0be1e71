// tokenizer_config.json and special_tokens_map.json.
#include "base/hash.h"
#include "fixture.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

class Config : public testing::Test {
 protected:
  std::unique_ptr<Tokenizer> Load(const Json& config, const Json& map = nullptr) const {
    WriteFileAtomic(folder_.path() / "tokenizer.json", SmallTokenizer().dump());
    if (!config.is_null()) WriteFileAtomic(folder_.path() / "tokenizer_config.json", config.dump());
    if (!map.is_null()) WriteFileAtomic(folder_.path() / "special_tokens_map.json", map.dump());
    return Tokenizer::Load(folder_.path());
  }

  TemporaryFolder folder_;
};

TEST_F(Config, MayBeAbsent) {
  const auto tokenizer = Load(nullptr);
  EXPECT_EQ(tokenizer->bos_id(), -1);
  EXPECT_EQ(tokenizer->eos_id(), -1);
}

TEST_F(Config, NamesTokensInBothSpellings) {
  const auto tokenizer = Load({{"bos_token", "a"}, {"eos_token", {{"content", "b"}}}});
  EXPECT_EQ(tokenizer->bos_id(), 0);
  EXPECT_EQ(tokenizer->eos_id(), 1);
  EXPECT_EQ(tokenizer->Decode({0, 2, 1}, true), "c");
  EXPECT_EQ(tokenizer->Encode("c", true), (Ids{2}));
}

TEST_F(Config, ANamedTokenIsFoundInText) {
  EXPECT_EQ(Load({{"pad_token", "bc"}})->Encode("abc", false), (Ids{0, 5}));
}

TEST_F(Config, ANewTokenGetsTheNextId) {
  const auto tokenizer = Load({{"pad_token", "<pad>"}, {"additional_special_tokens", {"<x>"}}});
  EXPECT_EQ(tokenizer->TokenId("<pad>"), 6);
  EXPECT_EQ(tokenizer->TokenId("<x>"), 7);
  EXPECT_EQ(tokenizer->vocabulary_size(), 8);
  EXPECT_EQ(tokenizer->Encode("a<x>", false), (Ids{0, 7}));
}

TEST_F(Config, ThePostProcessorDecidesWhatIsAdded) {
  const Json config = {{"bos_token", "a"}, {"eos_token", "b"}, {"add_bos_token", true}};
  EXPECT_EQ(Load(config)->Encode("c", true), (Ids{2}));
}

TEST_F(Config, TheMapCountsOnlyWithoutAddedTokensDecoder) {
  const Json map = {{"bos_token", "b"}};
  EXPECT_EQ(Load({{"bos_token", "a"}}, map)->bos_id(), 1);
  EXPECT_EQ(Load({{"bos_token", "a"}, {"added_tokens_decoder", Json::object()}}, map)->bos_id(), 0);
}

TEST_F(Config, AddedTokensDecoderMustAgreeOnIds) {
  const auto config = [](const char* id) {
    return Json({{"added_tokens_decoder", {{id, {{"content", "<x>"}, {"special", true}}}}}});
  };
  EXPECT_EQ(Load(config("6"))->Decode({6, 0}, true), "a");
  EXPECT_THROW(Load(config("8")), Error);
  EXPECT_THROW(Load(config("six")), Error);
}

TEST_F(Config, BrokenFilesAreNamed) {
  WriteFileAtomic(folder_.path() / "tokenizer.json", SmallTokenizer().dump());
  for (const char* text :
       {"{", "[]", "{\"split_special_tokens\": true}", "{\"bos_token\": {\"content\": 1}}"}) {
    WriteFileAtomic(folder_.path() / "tokenizer_config.json", text);
    const Error e = Caught([&] { Tokenizer::Load(folder_.path()); });
    EXPECT_EQ(e.kind(), ErrorKind::kInput);
    EXPECT_THAT(e.what(), testing::HasSubstr("tokenizer_config.json"));
  }
}

TEST_F(Config, TheKeyChangesWithWhatDecidesTokens) {
  const std::string plain = Load({{"bos_token", "a"}})->key();
  EXPECT_EQ(Load({{"bos_token", "a"}, {"model_max_length", 7}})->key(), plain);
  EXPECT_NE(Load({{"bos_token", "b"}})->key(), plain);
  EXPECT_NE(Load({{"bos_token", "a"}, {"pad_token", "c"}})->key(), plain);
  Json other = SmallTokenizer();
  other["model"]["ignore_merges"] = true;
  EXPECT_NE(Small(other)->key(), Small(SmallTokenizer())->key());
  EXPECT_EQ(plain.size(), 32u);
  EXPECT_EQ(Small(other)->file_hash(), HashHex(other.dump()));
}

}  // namespace
}  // namespace evald
