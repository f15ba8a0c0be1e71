// Requests against those of lm-evaluation-harness 0.4.13 (tests/oracle/requests_compare.py).
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "base/file.h"
#include "base/jsonl.h"
#include "datasets/task_set.h"
#include "prepared/prepared_task.h"
#include "tests/oracle/request_digest.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

const fs::path kGolden = EVALD_SOURCE_DIR "/tests/golden/datasets";

fs::path DataDir() {
  const char* given = std::getenv("EVALD_DATA_DIR");
  return given != nullptr ? fs::path(given) : fs::path(EVALD_SOURCE_DIR) / "../shared/data";
}

Json AsJson(const PreparedDocument& document, const Request& request, const std::string& task) {
  return {{"task", task},
          {"doc_id", request.doc_id},
          {"idx", request.idx},
          {"kind", ToString(request.kind)},
          {"context", request.context},
          {"continuation", request.continuation},
          {"sampling", oracle::SamplingText(request)},
          {"target", document.target},
          {"choices", document.choices}};
}

// Prepares the made-up tasks and compares their requests with those of a golden file.
void CompareMadeUp(const PromptOptions& prompts, const std::string& golden) {
  const TemporaryFolder scratch;
  PrepareOptions options;
  options.cache_dir = scratch.path();
  options.prompts = prompts;
  const TaskRegistry registry({kGolden / "made_up"});
  std::map<std::string, std::vector<Json>> expected;
  ForEachJsonLine(kGolden / golden, [&](size_t, Json&& row) {
    expected[row["task"].get<std::string>()].push_back(std::move(row));
  });
  EXPECT_GE(expected.size(), 10u);
  for (const auto& [name, rows] : expected) {
    const ResolvedTasks resolved = registry.Resolve({TaskRequest{name}});
    const PreparedTask task(PrepareTask(resolved.leaves.at(0), options));
    size_t at = 0;
    for (int64_t i = 0; i < task.document_count(); ++i) {
      for (const Request& request : task.Requests(i, i + 1)) {
        ASSERT_LT(at, rows.size()) << name;
        EXPECT_EQ(AsJson(task.Document(i), request, name), rows[at]) << name << " request " << at;
        ++at;
      }
    }
    EXPECT_EQ(at, rows.size()) << name;
  }
}

TEST(Requests, MadeUpTasksAreTheHarnesss) { CompareMadeUp({}, "made_up_requests.jsonl"); }

PromptOptions Chat(const char* style, bool multiturn) {
  PromptOptions prompts;
  prompts.chat = std::make_shared<ChatTemplate>(
      ChatTemplate::Load(kGolden / "../chat" / style, "", std::nullopt));
  prompts.system_instruction = "Think.";
  prompts.fewshot_as_multiturn = multiturn;
  return prompts;
}

TEST(Requests, WithAChatTemplateAndExamplesAsTurnsTheyAreTheHarnesss) {
  CompareMadeUp(Chat("qwen25", true), "made_up_chat.jsonl");
}

TEST(Requests, WithAChatTemplateAndOneTurnTheyAreTheHarnesss) {
  CompareMadeUp(Chat("no_system", false), "made_up_chat_one_turn.jsonl");
}

TEST(Requests, WithASystemInstructionAloneTheyAreTheHarnesss) {
  PromptOptions prompts;
  prompts.system_instruction = "Think.";
  CompareMadeUp(prompts, "made_up_system.jsonl");
}

// Everything that decides prompts decides under which key they are prepared.
TEST(Requests, PreparedPromptsAreKeptApart) {
  const TemporaryFolder scratch;
  PrepareOptions options;
  options.cache_dir = scratch.path();
  const TaskRegistry registry({kGolden / "made_up"});
  const LeafTask leaf = registry.Resolve({TaskRequest{"made_up_choice_strings"}}).leaves.at(0);
  std::set<fs::path> folders = {PrepareTask(leaf, options)};
  options.prompts.system_instruction = "Think.";
  folders.insert(PrepareTask(leaf, options));
  for (const char* style : {"qwen25", "zephyr"}) {
    for (const bool multiturn : {true, false}) {
      options.prompts = Chat(style, multiturn);
      folders.insert(PrepareTask(leaf, options));
    }
  }
  EXPECT_EQ(folders.size(), 6u);
}

// The template of qwen3 writes empty thinking into the prompt if thinking is switched off.
TEST(Requests, ThinkingIsAnArgumentOfTheChatTemplate) {
  const TemporaryFolder scratch;
  PrepareOptions options;
  options.cache_dir = scratch.path();
  options.prompts = Chat("qwen3", true);
  const TaskRegistry registry({kGolden / "made_up"});
  const auto prompt = [&](std::optional<bool> enable_thinking) {
    TaskRequest request{"made_up_choice_strings"};
    if (enable_thinking) request.enable_thinking = *enable_thinking;
    const LeafTask leaf = registry.Resolve({request}).leaves.at(0);
    return PreparedTask(PrepareTask(leaf, options)).Requests(0, 1).at(0).context;
  };
  const std::string plain = prompt(std::nullopt), off = prompt(false);
  EXPECT_EQ(off, plain + "<think>\n\n</think>\n\n");
}

TEST(Requests, BuiltInTasksAreTheHarnesss) {
  if (!fs::exists(DataDir() / "gsm8k")) {
    GTEST_SKIP() << "no benchmark data at " << DataDir() << " (set EVALD_DATA_DIR)";
  }
  const TemporaryFolder scratch;
  PrepareOptions options;
  options.cache_dir = scratch.path();
  options.data_dir = DataDir();
  const TaskRegistry registry({});
  const Json golden = ParseJson(ReadFile(kGolden / "builtin_requests.json"), "golden");
  EXPECT_GE(golden.size(), 60u);
  for (const auto& item : golden.items()) {
    const ResolvedTasks resolved = registry.Resolve({TaskRequest{item.key()}});
    const PreparedTask task(PrepareTask(resolved.leaves.at(0), options));
    EXPECT_EQ(oracle::Digests(task), item.value()) << item.key();
  }
}

}  // namespace
}  // namespace evald
