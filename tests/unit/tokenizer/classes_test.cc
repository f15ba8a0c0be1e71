// Folders in many layouts under every class, against transformers' AutoTokenizer
// (tests/oracle/tokenizer_classes.py wrote them).
#include <fmt/format.h>

#include <set>

#include "fixture.h"
#include "tests/unit/support/caught.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/tokenizer_class.h"

namespace evald {
namespace {

using testing::HasSubstr;

std::filesystem::path Folder() { return GoldenFolder() / "classes"; }

Json ReadJson(const std::filesystem::path& file) {
  return ParseJson(ReadFile(file), file.string());
}

class Layout {
 public:
  explicit Layout(const Json& line) {
    static const Json bytes = ReadJson(Folder() / "bytes.json");
    static const Json marks = ReadJson(Folder() / "marks.json");
    Json file = line["base"] == "bytes" ? bytes : marks;
    for (const auto& [part, value] : line["parts"].items()) file[part] = value;
    WriteFileAtomic(folder_.path() / "tokenizer.json", file.dump());
    for (const auto& [name, value] : line["files"].items()) {
      WriteFileAtomic(folder_.path() / name, value.dump());
    }
  }
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

Json Or(const Json& value, const Json& instead) { return value.is_null() ? instead : value; }

// Checks the lines. Returns the number of texts.
size_t CheckLines(const Tokenizer& tokenizer, const Json& lines) {
  for (const Json& line : lines) {
    SCOPED_TRACE(ToLine(line));
    const std::string text = line[0];
    if (line[1].is_null()) {
      EXPECT_THAT(RefusalOf([&] { tokenizer.Encode(text, false); }),
                  HasSubstr("is needed but is not in the vocab"));
      continue;
    }
    const Ids special = Or(line[2], line[1]);
    const std::string decoded = Or(line[3], text);
    EXPECT_EQ(tokenizer.Encode(text, false), line[1].get<Ids>());
    EXPECT_EQ(tokenizer.Encode(text, true), special);
    EXPECT_EQ(tokenizer.Decode(special, false), decoded);
    EXPECT_EQ(tokenizer.Decode(special, true), Or(line[4], decoded).get<std::string>());
  }
  return lines.size();
}

TEST(Classes, EveryLayoutGivesTheTokensOfItsClass) {
  size_t texts = 0;
  size_t refused = 0;
  ForEachJsonLine(Folder() / "layouts.jsonl", [&](size_t number, const Json& line) {
    SCOPED_TRACE(
        fmt::format("layout {}: {} {}", number, ToLine(line["files"]), ToLine(line["parts"])));
    const Layout layout(line);
    EXPECT_EQ(tok::NamedTokenContents(layout.path()), line["named"]);
    try {
      texts += CheckLines(*Tokenizer::Load(layout.path()), line["lines"]);
    } catch (const Error& e) {
      // An added token would get another id than the one in its file.
      EXPECT_THAT(e.what(), HasSubstr("but the tokenizers library would give it"));
      ++refused;
    }
  });
  EXPECT_GE(texts, 3000u);
  EXPECT_LE(refused, 30u);
}

TEST(Classes, TheClassIsTheOneThatAutoTokenizerPicks) {
  size_t lines = 0;
  ForEachJsonLine(Folder() / "picks.jsonl", [&](size_t number, const Json& line) {
    SCOPED_TRACE(fmt::format("line {}: {}", number, ToLine(line)));
    const tok::PickedClass picked = tok::PickClass(
        {.tokenizer_config = line["tokenizer_config"], .config = line["config"], .directory = "d"},
        line["byte_level"].get<bool>() ? R"({"type":"ByteLevel"})" : "{}");
    ++lines;
    if (line["class"].is_null()) {
      EXPECT_EQ(tok::FindClass(picked.name), nullptr) << picked.name;
    } else {
      EXPECT_EQ(picked.name, line["class"].get<std::string>());
    }
  });
  EXPECT_GE(lines, 1000u);
}

class UnknownClass : public testing::Test {
 protected:
  // The error of loading with these two files.
  std::string Refusal(const Json& tokenizer_config, const Json& config) const {
    WriteFileAtomic(folder_.path() / "tokenizer.json", SmallTokenizer().dump());
    WriteFileAtomic(folder_.path() / "tokenizer_config.json", tokenizer_config.dump());
    WriteFileAtomic(folder_.path() / "config.json", config.dump());
    return RefusalOf([&] { Tokenizer::Load(folder_.path()); });
  }

  TemporaryFolder folder_;
};

TEST_F(UnknownClass, IsRefusedWithThePlaceThatNamesIt) {
  const std::string text =
      Refusal({{"tokenizer_class", "AlbertTokenizerFast"}}, {{"model_type", "llama"}});
  EXPECT_THAT(text, HasSubstr(folder_.path().string() + "/tokenizer_config.json: tokenizer_class"));
  EXPECT_THAT(text, HasSubstr("'AlbertTokenizer' is not known; evald serves TokenizersBackend"));
  EXPECT_THAT(text, HasSubstr("LlamaTokenizer, GPT2Tokenizer, Qwen2Tokenizer, GPTNeoXTokenizer, "
                              "GemmaTokenizer"));
  EXPECT_THAT(text, HasSubstr("set \"tokenizer_class\""));
  EXPECT_THAT(Refusal(Json::object(), {{"model_type", "albert"}}),
              HasSubstr("config.json: model_type 'albert': the tokenizer class 'AlbertTokenizer'"));
  EXPECT_THAT(Refusal(Json::object(), {{"model_type", "llama"}, {"tokenizer_class", "Own"}}),
              HasSubstr("config.json: tokenizer_class: the tokenizer class 'Own'"));
}

TEST_F(UnknownClass, DoesNotMatterWhereTheModelTypeDecides) {
  for (const char* type : {"mistral", "internlm2", "olmo2", "qwen2"}) {
    EXPECT_EQ(Refusal({{"tokenizer_class", "Own"}}, {{"model_type", type}}), "") << type;
  }
}

TEST_F(UnknownClass, OfTokenizerConfigMeansTheFileAsItIs) {
  for (const char* name : {"", "Own", "InternLM2TokenizerFast"}) {
    for (const char* type : {"llama", "qwen3", "made_up"}) {
      EXPECT_EQ(Refusal({{"tokenizer_class", name}}, {{"model_type", type}}), "") << name << type;
    }
  }
}

TEST_F(UnknownClass, CodeOfTheCheckpointIsNotRun) {
  const Json own = {{"auto_map", {{"AutoTokenizer", {"own.Slow", "own.Fast"}}}}};
  EXPECT_THAT(Refusal(own, {{"model_type", "llama"}}),
              HasSubstr("tokenizer_config.json: auto_map: the tokenizer class 'own.Fast'"));
  EXPECT_EQ(Refusal(own, {{"model_type", "internlm2"}}), "");
}

// The key names everything that decides tokens, in whatever file it is.
TEST_F(UnknownClass, TheKeyTellsClassesApart) {
  std::set<std::string> keys;
  size_t layouts = 0;
  const auto add = [&](const Json& tokenizer_config, const Json& config) {
    EXPECT_EQ(Refusal(tokenizer_config, config), "");
    keys.insert(Tokenizer::Load(folder_.path())->key());
    ++layouts;
  };
  const Json none = Json::object();
  add(none, none);
  for (const char* name :
       {"LlamaTokenizer", "GPT2Tokenizer", "Qwen2Tokenizer", "GPTNeoXTokenizer"}) {
    add({{"tokenizer_class", name}}, none);
    add({{"tokenizer_class", name}, {"add_prefix_space", name[0] != 'L'}}, none);
  }
  add({{"tokenizer_class", "LlamaTokenizer"}, {"legacy", true}}, none);
  add({{"tokenizer_class", "GemmaTokenizer"}}, none);
  add({{"tokenizer_class", "GemmaTokenizerFast"}, {"unk_token", "a"}}, none);
  EXPECT_EQ(keys.size(), layouts);
  add({{"tokenizer_class", "GPT2Tokenizer"}, {"legacy", true}}, none);
  add(none, {{"model_type", "qwen3"}});
  add(none, {{"model_type", "gemma3_text"}});
  EXPECT_EQ(keys.size(), layouts - 3) << "equal tokens, equal keys";
}

// _patch_mistral_regex of transformers.
TEST(MistralPattern, IsCorrectedWhereTransformersDoes) {
  const Json old_config = {{"model_type", "mistral"}, {"transformers_version", "4.57.1"}};
  const auto fixed = [&](const Json& part, const Json& config, size_t tokens, bool flag = true) {
    Json file = {{"pre_tokenizer", part}};
    tok::FixMistralPattern({{"fix_mistral_regex", flag}}, config, tokens, &file);
    return file["pre_tokenizer"];
  };
  const Json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const Json sequence = {{"type", "Sequence"},
                         {"pretokenizers", Json::array({{{"type", "Whitespace"}}, bytes})}};
  const Json done = fixed(sequence, old_config, 100'001);
  EXPECT_EQ(done["pretokenizers"][0]["type"], "Split");
  EXPECT_THAT(done["pretokenizers"][0]["pattern"]["Regex"].get<std::string>(),
              HasSubstr(R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*)"));
  EXPECT_EQ(done["pretokenizers"][1], bytes);
  EXPECT_EQ(fixed(bytes, old_config, 100'001), done);
  const Json marks = {{"type", "Metaspace"}, {"replacement", "_"}};
  EXPECT_EQ(fixed(marks, old_config, 100'001)["pretokenizers"][1]["type"], "ByteLevel");
  EXPECT_EQ(fixed(sequence, old_config, 100'000), sequence);
  EXPECT_EQ(fixed(sequence, old_config, 100'001, false), sequence);
  EXPECT_EQ(fixed(sequence, Json::object(), 100'001), sequence);
  EXPECT_EQ(fixed(sequence, {{"model_type", "llama"}}, 100'001), sequence);
  EXPECT_EQ(
      fixed(sequence, {{"model_type", "mistral"}, {"transformers_version", "5.0.0"}}, 100'001),
      sequence);
}

}  // namespace
}  // namespace evald
