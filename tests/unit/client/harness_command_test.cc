// Command lines of lm-evaluation-harness in evald's words.
#include "orchestrator/cli/harness_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evald/error.h"
#include "orchestrator/config/eval_config.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald::cli {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string RefusalOf(const std::vector<std::string>& words) {
  return CaughtText([&] { TranslateHarness(words); }, ErrorKind::kUsage);
}

// The translation must be an eval.yaml.
EvalConfig ConfigOf(const std::vector<std::string>& words, const TemporaryFolder& folder) {
  EvalOverrides overrides;
  overrides.folders = EvalOverrides::Folders::kJudged;
  return ParseEvalConfig(TranslateHarness(words).yaml, folder.path() / "eval.yaml", overrides);
}

TEST(HarnessCommand, WhatDecidesScoresIsTranslated) {
  const TemporaryFolder folder;
  const EvalConfig config =
      ConfigOf({"accelerate",
                "launch",
                "-m",
                "lm_eval",
                "--model",
                "hf",
                "--model_args",
                "pretrained=/models/a,dtype=bfloat16,max_length=2048,enable_thinking=False",
                "--tasks",
                "gsm8k,mmlu",
                "arc_easy",
                "-f",
                "5",
                "--limit",
                "0.25",
                "--gen_kwargs",
                "temperature=0.5,until=['a,b','c'],do_sample=True",
                "--apply_chat_template",
                "--fewshot_as_multiturn",
                "false",
                "--system_instruction",
                "Be brief.",
                "--include_path",
                "tasks",
                "--output_path",
                "out",
                "--seed",
                "1,2,3,4",
                "--batch_size",
                "auto",
                "--device",
                "cpu",
                "--log_samples"},
               folder);
  EXPECT_EQ(config.engine.name, "native");
  EXPECT_EQ(config.checkpoint, "/models/a");
  EXPECT_EQ(config.engine.settings["max_length"], 2048);
  EXPECT_EQ(config.engine.enable_thinking, false);
  ASSERT_EQ(config.tasks.size(), 3u);
  EXPECT_EQ(config.tasks[2].name, "arc_easy");
  EXPECT_EQ(config.tasks[0].num_fewshot, 5);
  EXPECT_EQ(config.tasks[0].limit_share, 0.25);
  EXPECT_EQ(config.tasks[0].generation_kwargs,
            Json({{"temperature", 0.5}, {"until", {"a,b", "c"}}, {"do_sample", true}}));
  EXPECT_TRUE(config.prompts.chat_template);
  EXPECT_EQ(config.prompts.fewshot_as_multiturn, false);
  EXPECT_EQ(config.prompts.system_instruction, "Be brief.");
  EXPECT_EQ(config.task_dirs[0], folder.path() / "tasks");
  EXPECT_EQ(config.output_dir, folder.path() / "out");
  EXPECT_EQ(config.fewshot_seed, 4u);
  EXPECT_EQ(config.workers.devices, std::vector<std::string>{"cpu:0"});
}

TEST(HarnessCommand, ServersBecomeEngines) {
  const TemporaryFolder folder;
  const EvalConfig vllm =
      ConfigOf({"lm-eval", "run", "-M", "vllm", "-a", "pretrained=/m", "tensor_parallel_size=4",
                "gpu_memory_utilization=0.8", "dtype=float16", "-t", "gsm8k"},
               folder);
  EXPECT_EQ(vllm.engine.name, "vllm");
  EXPECT_EQ(vllm.engine.settings["dtype"], "float16");
  EXPECT_EQ(vllm.engine.settings["memory_share"], 0.8);
  EXPECT_EQ(vllm.workers.devices_per_worker, 4);
  const EvalConfig server = ConfigOf(
      {"--model=local-completions", "--model_args",
       R"({"base_url": "http://gpu:8000/v1/completions", "model": "m", "num_concurrent": 16})",
       "--tasks", "gsm8k", "--limit", "10"},
      folder);
  EXPECT_EQ(server.engine.name, "openai");
  EXPECT_EQ(server.engine.settings["base_url"], "http://gpu:8000");
  EXPECT_EQ(server.engine.settings["concurrency"], 16);
  EXPECT_EQ(server.tasks[0].limit, 10);
}

TEST(HarnessCommand, NothingIsLeftOutInSilence) {
  const HarnessTranslation found =
      TranslateHarness({"lm_eval", "--model_args", "pretrained=gpt2,revision=main,dtype=auto",
                        "--tasks", "gsm8k", "--use_cache", "x", "--wandb_args", "a=b", "c=d"});
  EXPECT_THAT(found.notes, Contains(StartsWith("gpt2 is no folder here")));
  EXPECT_THAT(found.notes, Contains(StartsWith("revision of --model_args is left out")));
  EXPECT_THAT(found.notes, Contains(StartsWith("dtype is left out")));
  EXPECT_THAT(found.notes, Contains(StartsWith("--use_cache is left out")));
  EXPECT_THAT(found.notes, Contains(StartsWith("--wandb_args is left out")));
}

TEST(HarnessCommand, WhatWouldChangeScoresIsRefused) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"lm_eval", "--tasks", "a", "--samples", "{}"}, "--samples has no counterpart in evald"},
      {{"lm_eval", "--tasks", "a", "--predict_only"}, "--predict_only has no counterpart"},
      {{"lm_eval", "--tasks", "a", "--tusks"}, "'--tusks' is no option of lm_eval 0.4.13"},
      {{"lm_eval", "--model", "nemo_lm", "--tasks", "a"}, "--model nemo_lm has no counterpart"},
      {{"lm_eval", "--model", "hf", "--tasks", "a"}, "--model_args has no pretrained=..."},
      {{"lm_eval", "--model_args", "pretrained=/m"}, "--tasks names no task"},
      {{"lm_eval", "--model_args", "pretrained"}, "'pretrained' is not of the form key=value"},
      {{"lm_eval", "--tasks"}, "--tasks has no value"},
      {{}, "--model_args has no pretrained=..."},
  };
  for (const auto& [words, problem] : cases) EXPECT_THAT(RefusalOf(words), HasSubstr(problem));
}

}  // namespace
}  // namespace evald::cli
