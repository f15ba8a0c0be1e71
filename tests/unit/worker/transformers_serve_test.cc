// The openai engine on a real `transformers serve`, against transformers' own generate. Takes about
// a minute. Runs if these variables are set:
//   EVALD_TRANSFORMERS_PYTHON  a Python with torch, transformers[serving]
//   EVALD_TRANSFORMERS         the `transformers` command of that Python
//   EVALD_SERVED_CHECKPOINT    a small checkpoint
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "base/jsonl.h"
#include "support.h"
#include "tests/unit/support/temporary_folder.h"
#include "worker/server/completions.h"
#include "worker/server/server_engine.h"

namespace evald {
namespace {

constexpr int kTokens = 24;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string Output(const std::string& command) {
  std::string output;
  FILE* pipe = ::popen(command.c_str(), "r");
  std::array<char, 4096> chunk;
  while (const size_t got = std::fread(chunk.data(), 1, chunk.size(), pipe)) {
    output.append(chunk.data(), got);
  }
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return output;
}

TEST(TransformersServe, GivesTheTextThatTransformersGenerates) {
  const std::string python = Variable("EVALD_TRANSFORMERS_PYTHON");
  const std::string serve = Variable("EVALD_TRANSFORMERS");
  const std::string checkpoint = Variable("EVALD_SERVED_CHECKPOINT");
  if (python.empty() || serve.empty() || checkpoint.empty()) {
    GTEST_SKIP()
        << "EVALD_TRANSFORMERS_PYTHON, EVALD_TRANSFORMERS or EVALD_SERVED_CHECKPOINT unset";
  }
  const Json prompts{"Question: 12 + 7 = ?\nAnswer:", "def add(a, b):\n", "The",
                     "Once upon a time there was", "1 2 3 4 5"};
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "prompts.json") << prompts.dump();
  const Json expected =
      ParseJson(Output(fmt::format("HF_HUB_OFFLINE=1 {} {}/tests/oracle/greedy_text.py {} {} {}",
                                   python, EVALD_SOURCE_DIR, checkpoint, kTokens,
                                   (folder.path() / "prompts.json").string())),
                "oracle");

  const Json settings{{"command",
                       {serve, "serve", "{checkpoint}", "--host={host}", "--port={port}",
                        "--device=cpu", "--dtype=float32"}},
                      {"environment", {{"HF_HUB_OFFLINE", "1"}}},
                      {"model", "{checkpoint}"},
                      {"concurrency", 1},
                      {"stops_max", 64}};
  const auto engine = MakeServerEngine({"openai", settings, "cpu:0", 1, 1});
  engine->Load(checkpoint);
  EXPECT_EQ(engine->LoadReport()["scoring"]["offered"], false);
  for (size_t i = 0; i < prompts.size(); ++i) {
    Request request;
    request.doc_id = static_cast<int64_t>(i);
    request.context = prompts[i];
    request.sampling.max_gen_toks = kTokens;
    if (i % 2 == 1) request.sampling.until = {"\n", "e"};
    engine->Submit(i, request);
  }
  size_t answered = 0;
  while (engine->pending() > 0) {
    for (const Finished& one : engine->Step(std::chrono::milliseconds(100))) {
      std::string text = expected[one.tag];
      if (one.tag % 2 == 1) server::CutAtStop({"\n", "e"}, &text);
      EXPECT_EQ(one.generation.text, text) << prompts[one.tag];
      EXPECT_GT(one.generation.tokens_in, 0);
      ++answered;
    }
  }
  EXPECT_EQ(answered, prompts.size());
}

}  // namespace
}  // namespace evald
