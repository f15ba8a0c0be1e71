// A checkpoint's chat templates against transformers and lm-evaluation-harness
// (tests/oracle/chat_golden.py).
#include "chat/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/jsonl.h"
#include "evald/error.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kGolden = EVALD_SOURCE_DIR "/tests/golden/chat";

std::string Refusal(const fs::path& folder, const std::string& name = "") {
  return RefusalOf([&] { ChatTemplate::Load(folder, name, std::nullopt); });
}

const Json kHello = Json::array({{{"role", "user"}, {"content", "Hello"}}});

// Calls `check` for each line with its template.
template <typename Check>
void ForEachLine(const char* file, Check check) {
  size_t seen = 0;
  ForEachJsonLine(kGolden / file, [&](size_t number, const Json& line) {
    SCOPED_TRACE(number);
    const ChatTemplate chat =
        ChatTemplate::Load(kGolden / line["style"].get<std::string>(), "", std::nullopt);
    check(chat, line);
    ++seen;
  });
  EXPECT_GE(seen, 250u);
}

TEST(ChatTemplate, RendersWhatTransformersRenders) {
  ForEachLine("golden.jsonl", [](const ChatTemplate& chat, const Json& line) {
    if (line.contains("error")) {
      EXPECT_THROW(chat.Render(line["messages"], line["add_generation_prompt"]), Error) << line;
    } else {
      EXPECT_EQ(chat.Render(line["messages"], line["add_generation_prompt"]),
                line["output"].get<std::string>());
    }
  });
}

TEST(ChatTemplate, ArgumentsAreVariables) {
  const ChatTemplate plain(
      "{{ bos_token }}{% if enable_thinking is defined and not enable_thinking %}off{% endif %}"
      "{{ effort | default('none') }}{{ messages[0].content }}",
      {{"bos_token", "<s>"}}, std::nullopt, "here");
  EXPECT_EQ(plain.Render(kHello, true), "<s>noneHello");
  EXPECT_FALSE(plain.Identity().contains("arguments")) << "keys of plain prompts stay as they are";
  const ChatTemplate off = plain.WithArguments({{"enable_thinking", false}});
  EXPECT_EQ(off.Render(kHello, true), "<s>offnoneHello");
  const ChatTemplate low = off.WithArguments({{"effort", "low"}, {"bos_token", "<b>"}});
  EXPECT_EQ(low.Render(kHello, true), "<b>offlowHello") << "an argument goes before a token's name";
  EXPECT_EQ(low.Identity()["arguments"].size(), 3u);
  EXPECT_NE(low.Identity(), off.Identity());
  EXPECT_TRUE(plain.Mentions("enable_thinking"));
  EXPECT_FALSE(plain.Mentions("reasoning_effort"));
}

TEST(ChatTemplate, LeavesTheSystemMessageOutWhereTheHarnessDoes) {
  ForEachLine("harness.jsonl", [](const ChatTemplate& chat, const Json& line) {
    if (line.contains("error")) {
      EXPECT_THROW(chat.RenderForHarness(line["messages"], line["add_generation_prompt"]), Error)
          << line;
    } else {
      EXPECT_EQ(chat.RenderForHarness(line["messages"], line["add_generation_prompt"]),
                line["output"].get<std::string>());
    }
  });
}

TEST(ChatTemplate, TheHarnessNamesATokenForPadding) {
  size_t lines = 0;
  ForEachJsonLine(kGolden / "padding.jsonl", [&](size_t number, const Json& line) {
    SCOPED_TRACE(testing::Message() << number << ": " << line["files"]["tokenizer_config.json"]);
    const TemporaryFolder folder;
    for (const auto& [name, content] : line["files"].items()) folder.Write(name, content.dump());
    const Json messages =
        Json::array({{{"role", "user"}, {"content", "How many legs has a spider?\n"}}});
    EXPECT_EQ(ChatTemplate::Load(folder.path(), "", std::nullopt).RenderForHarness(messages, true),
              line["output"].get<std::string>());
    ++lines;
  });
  EXPECT_GE(lines, 150u);
}

TEST(ChatTemplate, OneOfSeveralIsPickedByName) {
  EXPECT_EQ(ChatTemplate::Load(kGolden / "zephyr", "rag", std::nullopt).Render(kHello, true),
            "Hello");
  EXPECT_EQ(ChatTemplate::Load(kGolden / "chatml", "tool_use", std::nullopt).Render(kHello, true),
            "tools");
  EXPECT_THAT(Refusal(kGolden / "zephyr", "rga"),
              HasSubstr("no chat template is named 'rga', found default, rag"));
  EXPECT_THAT(Refusal(kGolden / "llama2", "rag"), HasSubstr("found default"));
}

TEST(ChatTemplate, FilesThatHaveNoneOrBrokenOnesAreRefused) {
  const TemporaryFolder folder;
  EXPECT_THAT(Refusal(folder.path()),
              HasSubstr("found no chat template, expected chat_template.jinja or"));
  EXPECT_THAT(Refusal(folder.path()), HasSubstr("leave chat_template out of eval.yaml"));
  folder.Write("additional_chat_templates/a.jinja", "x");
  folder.Write("additional_chat_templates/b.jinja", "y");
  EXPECT_THAT(Refusal(folder.path()), HasSubstr("(a, b) and none is the default"));
  folder.Write("chat_template.jinja", "{% if %}");
  EXPECT_THAT(Refusal(folder.path()), HasSubstr("chat_template.jinja: line 1: "));
  folder.Write("chat_template.jinja", "\xFF");
  EXPECT_THAT(Refusal(folder.path()),
              HasSubstr("chat_template.jinja: the chat template is not valid UTF-8"));
  folder.Write("chat_template.jinja", std::string(5 << 20, 'x'));
  EXPECT_THAT(Refusal(folder.path()), HasSubstr("5.0 MiB, expected at most 4.0 MiB"));
  const TemporaryFolder config;
  config.Write("tokenizer_config.json", R"({"chat_template": 7})");
  EXPECT_THAT(Refusal(config.path()),
              HasSubstr("chat_template: found number, expected a text or a list"));
  config.Write("tokenizer_config.json", R"({"chat_template": [{"name": "a"}]})");
  EXPECT_THAT(Refusal(config.path()), HasSubstr("'template'"));
  config.Write("tokenizer_config.json", "[]");
  EXPECT_THAT(Refusal(config.path()),
              HasSubstr("tokenizer_config.json: found array, expected an object"));
}

// The same map as special_tokens_map in transformers' apply_chat_template. The class names tokens
// that the files do not name, and there are tokens with names of their own.
TEST(ChatTemplate, KnowsTheNamedTokensOfTheTokenizersClass) {
  const TemporaryFolder folder;
  folder.Write("chat_template.jinja", "{{ bos_token }}|{{ eos_token }}|{{ image_token }}");
  const auto rendered = [&](const std::string& config) {
    folder.Write("tokenizer_config.json", config);
    return ChatTemplate::Load(folder.path(), "", std::nullopt).Render(kHello, true);
  };
  EXPECT_EQ(rendered(R"({"eos_token": "</end>"})"), "|</end>|");
  EXPECT_EQ(rendered(R"({"tokenizer_class": "LlamaTokenizer", "image_token": "<image>"})"),
            "<s>|</s>|<image>");
  EXPECT_EQ(rendered(R"({"tokenizer_class": "LlamaTokenizer", "bos_token": null})"), "|</s>|");
  EXPECT_EQ(rendered(R"({"tokenizer_class": "GPT2TokenizerFast", "eos_token": "<e>"})"),
            "<|endoftext|>|<e>|");
}

TEST(ChatTemplate, TheDateIsTheOneThatWasGiven) {
  const std::string text = R"({{ strftime_now("%d %b %Y") }}{{ messages[0].content }})";
  constexpr int64_t kDay = 1769817600;  // 2026-01-31
  EXPECT_EQ(ChatTemplate(text, Json::object(), ChatDate{kDay, false}, "t").Render(kHello, true),
            "31 Jan 2026Hello");
  const Error e =
      Caught([&] { ChatTemplate(text, Json::object(), std::nullopt, "t").Render(kHello, true); });
  EXPECT_THAT(e.what(), HasSubstr("strftime_now"));
  EXPECT_THAT(e.what(), HasSubstr("chat_date"));
}

// Everything that decides a prompt is in the key of the task prepared from it.
TEST(ChatTemplate, ItsIdentityIsAllThatDecides) {
  const Json tokens = {{"bos_token", "<s>"}};
  const Json plain = ChatTemplate("a", tokens, std::nullopt, "t").Identity();
  EXPECT_EQ(plain, ChatTemplate("a", tokens, std::nullopt, "elsewhere").Identity());
  EXPECT_NE(plain, ChatTemplate("b", tokens, std::nullopt, "t").Identity());
  EXPECT_NE(plain, ChatTemplate("a", Json::object(), std::nullopt, "t").Identity());
  EXPECT_NE(plain, ChatTemplate("a", tokens, ChatDate{0, false}, "t").Identity());
  EXPECT_NE(ChatTemplate("a", tokens, ChatDate{0, true}, "t").Identity(),
            ChatTemplate("a", tokens, ChatDate{0, false}, "t").Identity());
}

// Only a template's own objection leads to another try. Another failure is not the system message's
// fault.
TEST(ChatTemplate, OtherFailuresAreNotTriedWithoutTheSystemMessage) {
  const Json chat =
      Json::array({{{"role", "system"}, {"content", "s"}}, {{"role", "user"}, {"content", "u"}}});
  const ChatTemplate unknown("{% if messages[0].role == 'system' %}{{ 'x' | nosuch }}{% endif %}y",
                             Json::object(), std::nullopt, "t");
  EXPECT_THROW(unknown.RenderForHarness(chat, true), Error);
  const ChatTemplate objects(
      "{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}y",
      Json::object(), std::nullopt, "t");
  EXPECT_EQ(objects.RenderForHarness(chat, true), "y");
}

}  // namespace
}  // namespace evald
