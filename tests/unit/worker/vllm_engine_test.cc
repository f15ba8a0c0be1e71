// The engine `vllm` on a server that speaks vLLM's protocol (fake_vllm.py): answers, exchanges of
// weights, and what happens when one of them fails. The faults are those seen with vLLM 0.32.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "support.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"
#include "tiny_tokenizer.h"
#include "worker/server/server_engine.h"

namespace evald {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class VllmEngine : public testing::Test {
 protected:
  // A checkpoint whose weights are 64 bytes of `value`.
  fs::path Checkpoint(const std::string& name, char value, Json config = Json::object()) {
    const fs::path folder = folder_.path() / name;
    fs::create_directory(folder);
    test::WriteTinyCheckpoint(folder, 512);
    config["max_position_embeddings"] = 512;
    WriteFileAtomic(folder / "config.json", ToLine(config));
    const Json tensor = {{"dtype", "F32"}, {"shape", {8}}, {"data_offsets", {0, 32}}};
    Json head = tensor;
    head["data_offsets"] = {32, 64};
    const std::string header = ToLine(Json{{"lm_head.weight", tensor}, {"norm.weight", head}});
    std::string file(8, '\0');
    file[0] = static_cast<char>(header.size());
    WriteFileAtomic(folder / "model.safetensors", file + header + std::string(64, value));
    return folder;
  }

  std::unique_ptr<Engine> Make(Json settings = Json::object(), const std::string& fault = "") {
    settings["command"] = {"/usr/bin/python3", EVALD_SOURCE_DIR "/tests/unit/worker/fake_vllm.py"};
    Json environment = settings.value("environment", Json::object());
    environment["FAKE_FAULT"] = fault;
    environment["FAKE_NOTES"] = Notes();
    settings["environment"] = environment;
    return MakeServerEngine({"vllm", settings, "cpu:0", 1, 1});
  }

  std::string Notes() const { return folder_.path() / "notes"; }
  // The lines that the server noted and that begin with `what`.
  std::vector<std::string> Noted(const std::string& what) const {
    std::vector<std::string> lines;
    for (const std::string& line : Split(ReadFile(Notes()), '\n')) {
      if (line.starts_with(what)) lines.push_back(line);
    }
    return lines;
  }

  static std::vector<int32_t> Tokens(const std::string& text) {
    std::vector<int32_t> tokens;
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
    return tokens;
  }

  static Request Text(int64_t doc_id, const std::string& prompt, int most = 8) {
    Request request;
    request.task = "t";
    request.doc_id = doc_id;
    request.context_tokens = Tokens(prompt);
    request.sampling.max_gen_toks = most;
    return request;
  }

  static Request Choice(int64_t doc_id, int idx, const std::string& prompt,
                        const std::string& continuation) {
    Request request = Text(doc_id, prompt);
    request.kind = RequestKind::kLoglikelihood;
    request.idx = idx;
    request.continuation_tokens = Tokens(continuation);
    return request;
  }

  static std::map<std::pair<int64_t, int>, Generation> Run(Engine* engine,
                                                           const std::vector<Request>& requests) {
    uint64_t tag = 0;
    for (const Request& request : requests) engine->Submit(tag++, request);
    std::map<std::pair<int64_t, int>, Generation> answers;
    while (engine->pending() > 0) {
      for (const Finished& one : engine->Step(std::chrono::milliseconds(50)))
        answers[{one.generation.doc_id, one.generation.idx}] = one.generation;
    }
    return answers;
  }

  TemporaryFolder folder_;
};

TEST_F(VllmEngine, LearnsFromTheServerWhatItNeeds) {
  const auto engine = Make();
  engine->Load(Checkpoint("a", 'a'));
  const EngineInfo info = engine->Info();
  EXPECT_EQ(info.name, "vllm");
  EXPECT_EQ(info.version, "0.32.0");
  EXPECT_EQ(info.max_length, 512);
  EXPECT_EQ(info.concurrency, 4 * 7);
  EXPECT_EQ(info.kinds.size(), 3u);
  EXPECT_FALSE(info.deterministic);
  const Json report = engine->LoadReport();
  EXPECT_EQ(report["swapped"], false);
  EXPECT_EQ(report["why_not"], "the first checkpoint of this worker");
  for (const Json& way : report["scoring"]["ways"]) EXPECT_EQ(way["right"], true) << way;
  EXPECT_EQ(report["scoring"]["ways"].size(), 3u);
  const std::string start = Noted("start ").at(0);
  for (const char* word : {"--dtype=float32", "--generation-config=vllm", "--enforce-eager",
                           "--enable-scale-out", "--served-model-name=checkpoint"})
    EXPECT_THAT(start, HasSubstr(word));
}

TEST_F(VllmEngine, ChoicesOfOneQuestionAreOneCall) {
  const auto engine = Make();
  engine->Load(Checkpoint("a", 'a'));
  const size_t before = Noted("/v1/completions").size();
  std::vector<Request> requests;
  for (int64_t doc = 0; doc < 3; ++doc) {
    for (int idx = 0; idx < 4; ++idx)
      requests.push_back(Choice(doc, idx, fmt::format("question {}", doc),
                                std::string(1, static_cast<char>('a' + idx))));
  }
  requests.push_back(requests[0]);
  requests.back().idx = 9;  // the same choice twice
  const auto answers = Run(engine.get(), requests);
  EXPECT_EQ(Noted("/v1/completions").size() - before, 3u);
  double total = 0;
  for (int idx = 0; idx < 4; ++idx) total += std::exp(answers.at({0, idx}).loglikelihood);
  EXPECT_GT(total, 0);
  EXPECT_LT(total, 1);
  EXPECT_EQ(answers.at({0, 0}).loglikelihood, answers.at({0, 9}).loglikelihood);
  EXPECT_EQ(answers.at({0, 0}).tokens_in, 10);
  EXPECT_EQ(answers.at({0, 0}).tokens_out, 1);
}

// A score in which any way answers: the sum of the tokens' scores one by one.
TEST_F(VllmEngine, LongContinuationsAreScoredWithAndWithoutTheCache) {
  const auto engine = Make();
  engine->Load(Checkpoint("a", 'a'));
  const std::string prompt = "a prompt that fills more than one block of the cache, then ";
  const auto once = Run(engine.get(), {Choice(1, 0, prompt, "some words")});
  const auto again = Run(engine.get(), {Choice(1, 0, prompt, "some words"),  // all of it is cached
                                        Choice(1, 1, prompt, "other words")});
  EXPECT_EQ(again.at({1, 0}).loglikelihood, once.at({1, 0}).loglikelihood);
  double sum = 0;
  std::string context = prompt;
  for (const char c : std::string("other words")) {
    const auto one = Run(engine.get(), {Choice(2, 0, context, std::string(1, c))});
    sum += one.at({2, 0}).loglikelihood;
    context += c;
  }
  EXPECT_NEAR(again.at({1, 1}).loglikelihood, sum, 1e-9);
}

TEST_F(VllmEngine, WhatTheCacheMakesUnreadableIsAskedWithoutIt) {
  const std::string prompt = "a prompt that fills more than one block of the cache, then ";
  std::vector<double> found;
  for (const char* fault : {"", "not a number"}) {
    const auto engine = Make(Json::object(), fault);
    engine->Load(Checkpoint("a", 'a'));
    for (int times = 0; times < 2; ++times)
      found.push_back(Run(engine.get(), {Choice(1, 0, prompt, "words")}).at({1, 0}).loglikelihood);
  }
  EXPECT_EQ(found, std::vector<double>(4, found[0]));
}

TEST_F(VllmEngine, AWayThatScoresWronglyIsNotUsed) {
  const auto engine = Make(Json::object(), "wrong next tokens");
  engine->Load(Checkpoint("a", 'a'));
  const Json ways = engine->LoadReport()["scoring"]["ways"];
  EXPECT_EQ(ways[0]["right"], false) << ways;
  EXPECT_EQ(ways[2]["right"], true) << ways;
  const auto right = Make();
  right->Load(folder_.path() / "a");
  const std::vector<Request> requests = {Choice(1, 0, "question", "a")};
  EXPECT_NEAR(Run(engine.get(), requests).at({1, 0}).loglikelihood,
              Run(right.get(), requests).at({1, 0}).loglikelihood, 1e-9);
}

TEST_F(VllmEngine, RollingWindowsAreSummed) {
  const auto engine = Make();
  engine->Load(Checkpoint("a", 'a'));
  Request request = Text(1, "a text");
  request.kind = RequestKind::kLoglikelihoodRolling;
  EXPECT_THAT(RefusalOf([&] { engine->Submit(1, request); }),
              HasSubstr("neither a BOS nor an EOS"));
  WriteFileAtomic(folder_.path() / "a" / "tokenizer_config.json",
                  R"({"tokenizer_class":"PreTrainedTokenizerFast","bos_token":"q"})");
  engine->Load(folder_.path() / "a");
  const Generation rolled = Run(engine.get(), {request}).at({1, 0});
  EXPECT_NEAR(rolled.loglikelihood,
              Run(engine.get(), {Choice(1, 0, "q", "a text")}).at({1, 0}).loglikelihood, 1e-9);
  EXPECT_EQ(rolled.tokens_out, 6);
  Request long_text = Text(2, std::string(1200, 'b'));  // beyond the context of 512
  long_text.kind = RequestKind::kLoglikelihoodRolling;
  EXPECT_EQ(Run(engine.get(), {long_text}).at({2, 0}).tokens_out, 1200);
  Request nothing = Text(3, "");
  nothing.kind = RequestKind::kLoglikelihoodRolling;
  EXPECT_EQ(Run(engine.get(), {nothing}).at({3, 0}).loglikelihood, 0);
}

TEST_F(VllmEngine, TextsAreThoseOfTheServersTokens) {
  const auto engine = Make();
  engine->Load(Checkpoint("a", 'a'));
  Request plain = Text(1, "once", 300), cut = Text(2, "once", 300);
  const std::string whole = Run(engine.get(), {plain}).at({1, 0}).text;
  ASSERT_GT(whole.size(), 3u);
  EXPECT_THAT(whole, testing::Not(HasSubstr("text of the server")));
  EXPECT_THAT(whole, testing::Not(HasSubstr(std::string(1, '\0'))));
  cut.sampling.until = {"never", whole.substr(2, 1)};
  const Generation answer = Run(engine.get(), {cut}).at({2, 0});
  EXPECT_EQ(answer.text, whole.substr(0, whole.find(cut.sampling.until[1])));
  EXPECT_EQ(answer.finish, FinishReason::kStop);
}

TEST_F(VllmEngine, ManyStopStringsAreSent) {
  const auto engine = Make();
  engine->Load(Checkpoint("a", 'a'));
  Request request = Text(1, "once");
  for (int i = 0; i < 100; ++i) request.sampling.until.push_back(fmt::format("stop {}", i));
  EXPECT_EQ(Run(engine.get(), {request}).size(), 1u);
}

// ---- the parity check

TEST_F(VllmEngine, OtherTokensThanTheCheckpointsEndTheLoad) {
  const auto engine = Make(Json::object(), "other tokens");
  EXPECT_THAT(RefusalOf([&] { engine->Load(Checkpoint("a", 'a')); }),
              testing::AllOf(HasSubstr("does not compute this checkpoint: of \"The tide comes in"),
                             HasSubstr("it makes the tokens [..., 105, 100, 32, 99"),
                             HasSubstr("see whether the server reads another tokenizer")));
}

TEST_F(VllmEngine, TheParityCheckCanBeSwitchedOff) {
  const auto engine = Make({{"parity_seconds", 0}}, "other tokens");
  engine->Load(Checkpoint("a", 'a'));
  EXPECT_EQ(engine->Info().parity, "skipped: switched off by `parity_seconds: 0`");
}

TEST_F(VllmEngine, ACheckpointThatTheNativeEngineDoesNotServeIsNotChecked) {
  const auto engine = Make();
  engine->Load(Checkpoint("a", 'a'));
  EXPECT_THAT(engine->Info().parity,
              HasSubstr("skipped: evald's own engine does not serve this checkpoint"));
}

// ---- exchanges

TEST_F(VllmEngine, TheNextCheckpointIsExchangedInPlace) {
  const fs::path a = Checkpoint("a", 'a'), b = Checkpoint("b", 'b');
  const auto engine = Make();
  const std::vector<Request> requests = {Text(1, "once"), Choice(2, 0, "question", "some words")};
  engine->Load(a);
  const auto of_a = Run(engine.get(), requests);
  engine->Load(b);
  EXPECT_EQ(engine->LoadReport()["swapped"], true) << engine->LoadReport();
  const auto of_b = Run(engine.get(), requests);
  engine->Load(a);
  EXPECT_EQ(Run(engine.get(), requests).at({1, 0}).text, of_a.at({1, 0}).text);
  EXPECT_EQ(Noted("start ").size(), 1u);
  const auto fresh = Make();
  fresh->Load(b);
  const auto of_fresh = Run(fresh.get(), requests);
  EXPECT_NE(of_b.at({1, 0}).text, of_a.at({1, 0}).text);
  EXPECT_EQ(of_b.at({1, 0}).text, of_fresh.at({1, 0}).text);
  EXPECT_EQ(of_b.at({2, 0}).loglikelihood, of_fresh.at({2, 0}).loglikelihood);
  std::vector<std::string> steps;
  for (const std::string& line : Split(ReadFile(Notes()), '\n')) {
    const std::string path = line.substr(0, line.find(' '));
    for (const char* step : {"/pause", "/collective_rpc", "/reset", "/update", "/resume"}) {
      if (path.starts_with(step)) steps.push_back(path);
    }
  }
  steps.resize(5);
  EXPECT_EQ(steps,
            (std::vector<std::string>{"/pause?mode=wait", "/collective_rpc", "/reset_prefix_cache",
                                      "/update_weight_version", "/resume"}));
}

TEST_F(VllmEngine, AfterAnyFailureOrDoubtTheServerIsStartedAnew) {
  const fs::path a = Checkpoint("a", 'a'), b = Checkpoint("b", 'b');
  const std::pair<const char*, const char*> faults[] = {
      {"reload", "file not fully covered"},
      {"reset", "could not be cleared"},
      {"stale", "those of the checkpoint before"},
      {"dies at reload", "/collective_rpc"},
  };
  for (const auto& [fault, why] : faults) {
    SCOPED_TRACE(fault);
    const size_t starts = fs::exists(Notes()) ? Noted("start ").size() : 0;
    const auto engine = Make(Json::object(), fault);
    engine->Load(a);
    engine->Load(b);
    const Json report = engine->LoadReport();
    EXPECT_EQ(report["swapped"], false);
    EXPECT_THAT(report["why_not"].get<std::string>(), HasSubstr(why));
    EXPECT_EQ(Noted("start ").size() - starts, 2u);
    const auto fresh = Make();
    fresh->Load(b);
    EXPECT_EQ(Run(engine.get(), {Text(1, "once")}).at({1, 0}).text,
              Run(fresh.get(), {Text(1, "once")}).at({1, 0}).text);
  }
}

TEST_F(VllmEngine, OnlyCheckpointsOfOneShapeAreExchanged) {
  const fs::path a = Checkpoint("a", 'a');
  const std::pair<Json, const char*> others[] = {
      {{{"rope_theta", 5}}, "config.json differs"},
  };
  for (const auto& [config, why] : others) {
    const auto engine = Make();
    engine->Load(a);
    engine->Load(Checkpoint("other", 'b', config));
    EXPECT_EQ(engine->LoadReport()["why_not"], why);
  }
  const auto off = Make(Json{{"swap", false}});
  off->Load(a);
  off->Load(Checkpoint("b", 'b'));
  EXPECT_THAT(off->LoadReport()["why_not"].get<std::string>(), HasSubstr("swap: false"));
  const auto tied = Make();
  tied->Load(Checkpoint("tied", 'a', {{"tie_word_embeddings", true}}));
  tied->Load(Checkpoint("tied2", 'b', {{"tie_word_embeddings", true}}));
  EXPECT_THAT(tied->LoadReport()["why_not"].get<std::string>(), HasSubstr("tied"));
}

// ---- servers that do not work

TEST_F(VllmEngine, AServerThatEndsWithStatusNullIsStartedAgain) {
  const auto engine = Make(Json::object(), "dies");
  engine->Load(Checkpoint("a", 'a'));
  // The server ends at each request for 9 tokens.
  EXPECT_THAT(CaughtText([&] { Run(engine.get(), {Text(1, "once", 9), Text(2, "twice")}); },
                         ErrorKind::kInfrastructure),
              HasSubstr("the server ended (exit status 0) and was started again 3 times"));
  EXPECT_EQ(Noted("start ").size(), 4u);
}

TEST_F(VllmEngine, WhatIsMissingOrTooOldIsSaidInOneLine) {
  const fs::path a = Checkpoint("a", 'a');
  const Json absent = {{"command", {"/no/such/vllm"}}};
  std::string text = RefusalOf([&] { MakeServerEngine({"vllm", absent, "cpu:0", 1, 1})->Load(a); });
  EXPECT_THAT(text, HasSubstr("'/no/such/vllm' is not there"));
  EXPECT_THAT(text, HasSubstr("pip install"));
  text = RefusalOf([&] { Make(Json{{"environment", {{"FAKE_VERSION", "0.19.1"}}}})->Load(a); });
  EXPECT_THAT(text, HasSubstr("this is vLLM 0.19.1; the oldest that evald drives is 0.32"));
  text = CaughtText([&] { Make(Json::object(), "does not start")->Load(a); },
                    ErrorKind::kInfrastructure);
  EXPECT_THAT(text, HasSubstr("exit status 1): ValueError: Available memory on node 0"));
}

}  // namespace
}  // namespace evald
