#include "engines/engines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/file.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace {

using testing::HasSubstr;

TEST(Engines, EachHasAKeyOnce) {
  std::set<std::string> names;
  for (const EngineKind& kind : Engines()) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
    std::set<std::string> keys;
    for (const EngineSetting& setting : kind.settings)
      EXPECT_TRUE(keys.insert(setting.key).second) << kind.name << " " << setting.key;
  }
  EXPECT_EQ(EngineNames(), (std::vector<std::string>{"native", "vllm", "sglang", "llama-server",
                                                     "openai", "replay", "emulated"}));
  EXPECT_EQ(EngineNamed("replay").SettingKeys(), std::vector<std::string>{"generations"});
}

TEST(Engines, AreFoundByName) {
  EXPECT_EQ(FindEngine("none"), nullptr);
  EXPECT_STREQ(EngineNamed(kDefaultEngine).name, kDefaultEngine);
  try {
    EngineNamed("opanai");
    FAIL() << "there is no such engine";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUsage);
    EXPECT_THAT(e.what(), HasSubstr("unknown engine 'opanai'; did you mean 'openai'?"));
  }
}

// Traits that rely on a setting, or on each other.
TEST(Engines, TraitsAndSettingsFitTogether) {
  for (const EngineKind& kind : Engines()) {
    SCOPED_TRACE(kind.name);
    bool url = false;
    for (const EngineSetting& setting : kind.settings) url |= setting.use == SettingUse::kUrl;
    EXPECT_EQ(url, kind.server == ServerUse::kStartedOrGiven);
    const bool has_server = kind.server != ServerUse::kNone;
    EXPECT_TRUE(has_server || kind.gpus != GpuUse::kServer);
    EXPECT_TRUE(kind.HasSetting("prompt") || kind.prompts != PromptForm::kAsSet);
    EXPECT_TRUE(kind.generations_key == nullptr || kind.HasSetting(kind.generations_key));
    EXPECT_TRUE(kind.takes_weights || !kind.needs_checkpoint);
  }
  EXPECT_TRUE(EngineOfEarlierAnswers().HasSetting(EngineOfEarlierAnswers().generations_key));
}

TEST(Engines, AServerIsGivenByItsUrlAlone) {
  const EngineKind& openai = EngineNamed("openai");
  EXPECT_EQ(GivenServer(openai, {{"base_url", "http://h"}}), "http://h");
  for (const Json& url : {Json(), Json(""), Json(5)})
    EXPECT_EQ(GivenServer(openai, {{"base_url", url}}), "") << url;
  EXPECT_EQ(GivenServer(openai, {{"command", {"server"}}}), "");
  // A description that starts a server of its own and takes no URL.
  EngineKind preset = openai;
  preset.name = "preset";
  preset.server = ServerUse::kStarted;
  std::erase_if(preset.settings, [](const auto& one) { return one.use == SettingUse::kUrl; });
  EXPECT_EQ(GivenServer(preset, {{"base_url", "http://h"}}), "");
}

TEST(Engines, PromptsAreTokensIfTheEngineOrItsSettingSaysSo) {
  EXPECT_TRUE(TakesTokens(EngineNamed("native"), {{"prompt", "text"}}));
  EXPECT_TRUE(TakesTokens(EngineNamed("openai"), {{"prompt", "tokens"}}));
  EXPECT_FALSE(TakesTokens(EngineNamed("openai"), {{"prompt", "text"}}));
  EXPECT_FALSE(TakesTokens(EngineNamed("openai"), Json::object()));
  EXPECT_FALSE(TakesTokens(EngineNamed("replay"), {{"prompt", "tokens"}}));
}

// ---- the table in docs/engines.md

std::string WordOf(GpuUse use) {
  return use == GpuUse::kNone     ? "none"
         : use == GpuUse::kWorker ? "`evald-worker-cuda`"
                                  : "the server's";
}
std::string WordOf(ServerUse use) {
  return use == ServerUse::kNone      ? "none"
         : use == ServerUse::kStarted ? "started"
                                      : "started, or given by URL";
}
std::string WordOf(PromptForm form) {
  return form == PromptForm::kText     ? "text"
         : form == PromptForm::kTokens ? "tokens"
                                       : "as `prompt` says";
}
std::string YesOrNo(bool yes) { return yes ? "yes" : "no"; }

std::string RowOf(const EngineKind& kind) {
  const std::string checkpoint = kind.needs_checkpoint ? "needed"
                                 : kind.takes_weights  ? "optional"
                                                       : "not used";
  // A server holds one checkpoint, and is believed to score once it has passed a self-test.
  const bool has_server = kind.server != ServerUse::kNone;
  const std::string another = !kind.takes_weights       ? "not used"
                              : kind.HasSetting("swap") ? "exchanged in place, or a new server"
                              : has_server              ? "needs a new server"
                                                        : "loaded in place";
  return "| " +
         Join({kind.name, checkpoint, another, WordOf(kind.gpus), WordOf(kind.server),
               WordOf(kind.prompts), has_server ? "after a self-test" : "yes",
               YesOrNo(kind.keeps_prefixes), YesOrNo(kind.makes_answers_up)},
              " | ") +
         " |";
}

TEST(Engines, TheDocumentationHasEachWithItsTraits) {
  const std::string page = ReadFile(EVALD_SOURCE_DIR "/docs/engines.md");
  for (const EngineKind& kind : Engines()) EXPECT_THAT(page, HasSubstr("\n" + RowOf(kind) + "\n"));
}

// Every setting stands in the table of its engine's section. `generation_config` stands beside
// `engine` in eval.yaml.
TEST(Engines, TheDocumentationHasEachSetting) {
  const std::string page = ReadFile(EVALD_SOURCE_DIR "/docs/engines.md");
  for (const EngineKind& kind : Engines()) {
    const size_t begin = page.find("\n## " + std::string(kind.name) + "\n");
    ASSERT_NE(begin, page.npos) << kind.name;
    const std::string section = page.substr(begin, page.find("\n## ", begin + 1) - begin);
    for (const std::string& key : kind.SettingKeys()) {
      if (key == GenerationConfigSetting().key) continue;
      EXPECT_THAT(section, HasSubstr("`" + key + "`")) << kind.name;
    }
  }
}

}  // namespace
}  // namespace evald
