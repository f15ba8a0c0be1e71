// How the servers' programs are started, asked and understood. The replies are recorded from vLLM
// 0.32, or written after the sources named in worker/server/dialects/.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "support.h"
#include "tests/unit/support/caught.h"
#include "worker/server/dialect.h"
#include "worker/server/log_reason.h"

namespace evald::server {
namespace {

using testing::HasSubstr;

// Replies by path; what was asked.
struct Script {
  std::map<std::string, http_client::Response> replies;
  std::vector<std::pair<std::string, Json>> asked;

  void Add(const std::string& path, const std::string& body, int status = 200) {
    replies[path].status = status;
    replies[path].body = body;
  }
  Caller AsCaller() {
    return [this](const std::string& path, const Json& body, std::chrono::milliseconds) {
      asked.emplace_back(path, body);
      if (replies.contains(path)) return replies[path];
      http_client::Response absent;
      absent.status = 404;
      return absent;
    };
  }
};

LaunchSetup PlaceFor(std::vector<std::string> gpus = {}) {
  LaunchSetup setup;
  setup.checkpoint = "/dev/shm/c";
  setup.socket = "/tmp/s";
  setup.port = 4711;
  setup.threads = 3;
  setup.gpus = std::move(gpus);
  setup.dtype = "bfloat16";
  return setup;
}

std::string LineOf(const Launch& launch) { return Join(launch.command, " "); }

ScoreWindow WindowOf(std::vector<int32_t> tokens, std::vector<int32_t> targets) {
  const auto from = static_cast<int>(tokens.size() - targets.size());
  return {std::move(tokens), std::move(targets), from};
}

std::string Problem(const ScoringWay& way, const ScoreWindow& window, const std::string& body) {
  return CaughtText([&] { way.Read({&window}, body); }, ErrorKind::kInfrastructure);
}

// ---- vLLM

TEST(VllmDialect, IsStartedForEvaluation) {
  Options options;
  options.deterministic = true;
  options.memory_share = 0.5;
  options.arguments = {"--enable-expert-parallel"};
  const auto vllm = MakeVllmDialect();
  const Launch gpus = vllm->LaunchOf(options, PlaceFor({"GPU-1", "GPU-2"}));
  EXPECT_THAT(LineOf(gpus), HasSubstr("vllm serve /dev/shm/c --uds=/tmp/s"));
  EXPECT_THAT(LineOf(gpus), HasSubstr("--tensor-parallel-size=2"));
  EXPECT_THAT(LineOf(gpus), HasSubstr("--gpu-memory-utilization=0.5"));
  EXPECT_THAT(LineOf(gpus), HasSubstr("--enable-expert-parallel"));
  EXPECT_THAT(LineOf(gpus), testing::Not(HasSubstr("--enforce-eager")));
  EXPECT_EQ(gpus.environment.at("CUDA_VISIBLE_DEVICES"), "GPU-1,GPU-2");
  EXPECT_EQ(gpus.environment.at("VLLM_BATCH_INVARIANT"), "1");
  EXPECT_EQ(gpus.environment.at("HF_HUB_OFFLINE"), "1");
  options.command = {"/opt/bin/vllm"};
  options.kv_cache = uint64_t{3} << 30;
  const Launch processor = vllm->LaunchOf(options, PlaceFor());
  EXPECT_EQ(processor.command[0], "/opt/bin/vllm");
  EXPECT_EQ(processor.environment.count("VLLM_BATCH_INVARIANT"), 0u);
  EXPECT_EQ(processor.environment.at("VLLM_CPU_KVCACHE_SPACE"), "3");
  EXPECT_EQ(processor.environment.at("OMP_NUM_THREADS"), "3");
  EXPECT_FALSE(vllm->Deterministic(options, false));
  EXPECT_TRUE(vllm->Deterministic(options, true));
}

TEST(VllmDialect, ReadsTheRecordedNextTokens) {
  const auto ways = MakeVllmDialect()->ScoringWays({});
  const ScoringWay& way = *ways[0];
  const ScoreWindow ten = WindowOf({5, 6, 7, 8}, {10}), zero = WindowOf({5, 6, 7, 8}, {0});
  EXPECT_FALSE(way.Takes(WindowOf({5, 6}, {6, 10})));
  const Json body = way.Body({&ten, &zero, &ten});
  EXPECT_EQ(body["logprob_token_ids"], Json({0, 10}));
  EXPECT_EQ(body["logprobs"], 0);
  EXPECT_EQ(body["max_tokens"], 1);
  const std::string reply =
      R"({"choices":[{"index":0,"text":"","logprobs":{"text_offset":[0],
      "token_logprobs":[-1.4600090980529785],"tokens":["token_id:0"],"top_logprobs":[{
      "token_id:0":-1.4600090980529785,"token_id:10":-7.364265441894531}]},
      "finish_reason":"stop","stop_reason":null,"token_ids":[0]}]})";
  const auto scores = way.Read({&ten, &zero}, reply);
  EXPECT_DOUBLE_EQ(scores[0]->logprob, -7.364265441894531);
  EXPECT_FALSE(scores[0]->is_greedy);
  EXPECT_DOUBLE_EQ(scores[1]->logprob, -1.4600090980529785);
  EXPECT_TRUE(scores[1]->is_greedy);
  for (const char* wrong :
       {"null", "{", R"({"choices":[]})", R"({"choices":[{"logprobs":null,"token_ids":[0]}]})",
        R"({"choices":[{"logprobs":{"top_logprobs":[]},"token_ids":[0]}]})",
        R"({"choices":[{"logprobs":{"top_logprobs":[{"token_id:10":null}]},"token_ids":[0]}]})",
        R"({"choices":[{"logprobs":{"top_logprobs":[{"token_id:10":1.5}]},"token_ids":[0]}]})",
        R"({"choices":[{"logprobs":{"top_logprobs":[{"token_id:11":-1}]},"token_ids":[0]}]})",
        R"({"choices":[{"logprobs":{"top_logprobs":[{"token_id:10":-1}]},"token_ids":[]}]})",
        R"({"choices":[{"logprobs":{"top_logprobs":[{"token_id:10":NaN}]},"token_ids":[0]}]})"})
    EXPECT_THROW(way.Read({&ten}, wrong), Error) << wrong;
}

std::string PromptReply(const std::string& entries, const std::string& details) {
  return R"({"usage":{"prompt_tokens":5,"prompt_tokens_details":)" + details +
         R"(},"prompt_logprobs":)" + entries + R"(,"choices":[{"token_ids":[314]}]})";
}

TEST(VllmDialect, ReadsTheRecordedLogprobsOfAPrompt) {
  const auto ways = MakeVllmDialect()->ScoringWays({});
  const ScoringWay &cached = *ways[1], &whole = *ways[2];
  const ScoreWindow window = WindowOf({5, 6, 7, 8}, {8, 9});
  EXPECT_EQ(whole.Body({&window})["token_ids"], Json({5, 6, 7, 8, 9}));
  EXPECT_FALSE(whole.Body({&window})["sampling_params"].contains("skip_reading_prefix_cache"));
  EXPECT_EQ(cached.Body({&window})["sampling_params"]["skip_reading_prefix_cache"], false);
  EXPECT_EQ(cached.Body({&window})["sampling_params"]["detokenize"], false);
  const std::string entries =
      R"([null,{"6":{"logprob":-13,"rank":553},"14":{"logprob":-2,"rank":1}},
      {"4099":{"logprob":-3e38,"rank":0}},{"8":{"logprob":-0.5,"rank":1}},
      {"9":{"logprob":-3,"rank":2},"0":{"logprob":-3,"rank":1}}])";
  for (const ScoringWay* way : {&cached, &whole}) {
    const auto score = way->Read({&window}, PromptReply(entries, R"({"cached_tokens":2})"))[0];
    ASSERT_TRUE(score);
    EXPECT_DOUBLE_EQ(score->logprob, -3.5);
    EXPECT_FALSE(score->is_greedy);  // of two equally likely tokens the first is the greedy one
  }
  // The tokens of the answer lie in the cached part, or nobody knows.
  EXPECT_FALSE(cached.Read({&window}, PromptReply(entries, R"({"cached_tokens":3})"))[0]);
  EXPECT_FALSE(cached.Read({&window}, PromptReply(entries, "null"))[0]);
  // The newer model runner leaves the cached entries out.
  const std::string short_entries =
      R"([{"8":{"logprob":-0.5}},{"9":{"logprob":-3},"10":{"logprob":-4}}])";
  const auto score =
      cached.Read({&window}, PromptReply(short_entries, R"({"cached_tokens":2})"))[0];
  ASSERT_TRUE(score);
  EXPECT_DOUBLE_EQ(score->logprob, -3.5);
  EXPECT_TRUE(score->is_greedy);
  EXPECT_TRUE(cached.LeavesToNext(400, "Out of range float values are not JSON compliant"));
  EXPECT_FALSE(whole.LeavesToNext(400, "Out of range float values are not JSON compliant"));
  for (const char* wrong :
       {"null", "[]", "[null,null,null,null,null]", R"([null,{},{},{},{}])",
        R"([null,{},{},{"8":{"logprob":null}},{"9":{"logprob":-3}}])",
        R"([null,{},{},{"8":{"logprob":-1}},{"7":{"logprob":-3}}])", R"([1,2,3,4,5,6,7])"})
    EXPECT_THROW(whole.Read({&window}, PromptReply(wrong, R"({"cached_tokens":0})")), Error)
        << wrong;
}

TEST(VllmDialect, LearnsVersionAndLimits) {
  Script script;
  script.Add("/version", R"({"version":"0.32.0+cpu"})");
  script.Add("/server_info?config_format=json",
             R"({"vllm_config":{"scheduler_config":{"max_num_seqs":128}},
                 "vllm_env":{"VLLM_MAX_STOP_STRINGS":64}})");
  ServerFacts facts;
  MakeVllmDialect()->Learn(script.AsCaller(), &facts);
  EXPECT_EQ(facts.version, "0.32.0+cpu");
  EXPECT_EQ(facts.concurrency, 128);
  EXPECT_EQ(facts.stops_max, 64);
  script.Add("/version", R"({"version":"0.9.2"})");
  EXPECT_THAT(RefusalOf([&] { MakeVllmDialect()->Learn(script.AsCaller(), &facts); }),
              HasSubstr("0.9.2"));
  for (const char* odd :
       {"null", "[]", R"({"vllm_config":[1],"vllm_env":{"VLLM_MAX_STOP_STRINGS":"4"}})"}) {
    Script other;
    other.Add("/server_info?config_format=json", odd);
    ServerFacts none;
    MakeVllmDialect()->Learn(other.AsCaller(), &none);
    EXPECT_EQ(none.concurrency + none.stops_max, 0) << odd;
  }
  for (const char* fine : {"0.33.1", "1.0.0", "dev"}) {
    script.Add("/version", std::string(R"({"version":")") + fine + "\"}");
    EXPECT_NO_THROW(MakeVllmDialect()->Learn(script.AsCaller(), &facts)) << fine;
  }
}

TEST(VllmDialect, SwapsOnlyWhatIsRenewed) {
  const auto vllm = MakeVllmDialect();
  EXPECT_EQ(vllm->WhyNoSwap(true, true), "");
  EXPECT_EQ(vllm->WhyNoSwap(false, false), "");
  EXPECT_NE(vllm->WhyNoSwap(false, true), "");
}

TEST(PythonReason, IsTheFirstCause) {
  EXPECT_EQ(
      PythonReason("INFO x\n(EngineCore pid=1) ERROR 11-25 [core.py:1] ValueError: no memory\r\n"
                   "RuntimeError: Engine core initialization failed. See root cause above.\n"),
      "ValueError: no memory");
  EXPECT_EQ(
      PythonReason("(APIServer pid=1) WARNING 11-26 [system_utils.py:255] Found ulimit of 20000. "
                   "This can cause fd limit errors like `OSError: [Errno 24] Too many files`.\n"
                   "pydantic_core._pydantic_core.ValidationError: 1 validation error for "
                   "ModelConfig\n  Value error, User-specified max_model_len (100000) is\n"),
      "Value error, User-specified max_model_len (100000) is");
  EXPECT_EQ(PythonReason("usage: vllm [-h]\nvllm: error: unrecognized arguments: --no-such-flag\n"),
            "vllm: error: unrecognized arguments: --no-such-flag");
  EXPECT_EQ(PythonReason("nanobind: leaked 5 instances!\n"), "");
}

TEST(LlamaReason, IsTheFirstError) {
  EXPECT_EQ(
      LlamaReason("0.00.007.473 W srv  llama_server: no API key is set\n"
                  "0.00.008.009 E gguf_init_from_file: failed to open GGUF file '/no.gguf'\r\n"
                  "0.00.008.012 E llama_model_load: error loading model\n"),
      "gguf_init_from_file: failed to open GGUF file '/no.gguf'");
  EXPECT_EQ(LlamaReason("error: invalid argument: --nonsense\n"), "invalid argument: --nonsense");
  EXPECT_EQ(LlamaReason("0.00.1 I a text with E in it\nvitamin E helps\n"), "");
}

// ---- SGLang

TEST(SglangDialect, IsStartedForEvaluation) {
  Options options;
  options.deterministic = true;
  options.max_length = 4096;
  const Launch launch = MakeSglangDialect()->LaunchOf(options, PlaceFor({"GPU-1", "GPU-2"}));
  const std::string line = LineOf(launch);
  for (const char* word :
       {"python3 -m sglang.launch_server", "--model-path=/dev/shm/c", "--port=4711",
        "--dtype=bfloat16", "--sampling-defaults=openai", "--tp-size=2", "--context-length=4096",
        "--enable-deterministic-inference"})
    EXPECT_THAT(line, HasSubstr(word));
  EXPECT_EQ(launch.environment.at("CUDA_VISIBLE_DEVICES"), "GPU-1,GPU-2");
}

TEST(SglangDialect, AnOlderServerIsRefused) {
  Script script;
  ServerFacts facts;
  script.Add("/get_server_info", R"({"version":"0.5.9","max_running_requests":48})");
  EXPECT_THAT(RefusalOf([&] { MakeSglangDialect()->Learn(script.AsCaller(), &facts); }),
              HasSubstr("this is SGLang 0.5.9; the oldest that evald drives is 0.5.23"));
  for (const char* fine : {"0.5.23", "0.5.23.post1", "0.6", "1.0.0rc1", "main"}) {
    script.Add("/get_server_info",
               std::string(R"({"version":")") + fine + R"(","max_running_requests":48})");
    EXPECT_NO_THROW(MakeSglangDialect()->Learn(script.AsCaller(), &facts)) << fine;
    EXPECT_EQ(facts.concurrency, 48);
  }
}

TEST(SglangDialect, ReadsScores) {
  const auto ways = MakeSglangDialect()->ScoringWays({});
  const ScoreWindow ten = WindowOf({5, 6}, {10}), four = WindowOf({5, 6}, {4});
  EXPECT_EQ(ways[0]->Body({&ten, &four})["token_ids_logprob"], Json({10, 4}));
  const auto next =
      ways[0]->Read({&ten, &four},
                    R"({"text":"","output_ids":[4],"meta_info":{"output_token_ids_logprobs":
      [[[-2.5,10,null],[-0.25,4,null]]],"output_token_logprobs":[[-0.25,4,null]]}})");
  EXPECT_DOUBLE_EQ(next[0]->logprob, -2.5);
  EXPECT_FALSE(next[0]->is_greedy);
  EXPECT_TRUE(next[1]->is_greedy);

  const ScoreWindow window = WindowOf({5, 6, 7, 8}, {8, 9});
  const Json body = ways[1]->Body({&window});
  EXPECT_EQ(body["input_ids"], Json({5, 6, 7, 8, 9}));
  EXPECT_EQ(body["logprob_start_len"], 2);
  const auto reply = [](const std::string& own, const std::string& tops) {
    return R"({"output_ids":[1],"meta_info":{"input_token_logprobs":)" + own +
           R"(,"input_top_logprobs":)" + tops + "}}";
  };
  const auto score = ways[1]->Read({&window}, reply("[[null,7,null],[-0.5,8,null],[-3,9,null]]",
                                                    "[null,[[-0.5,8,null]],[[-2,4,null]]]"))[0];
  EXPECT_DOUBLE_EQ(score->logprob, -3.5);
  EXPECT_FALSE(score->is_greedy);
  EXPECT_THAT(Problem(*ways[1], window,
                      reply("[[null,7,null],[-0.5,6,null],[-3,9,null]]",
                            "[null,[[-0.5,8,null]],[[-2,4,null]]]")),
              HasSubstr("found token 6, expected 8"));
  for (const auto& [own, tops] : std::vector<std::pair<std::string, std::string>>{
           {"[[null,8,null],[-3,9,null]]", "[null,[[-2,4,null]]]"},
           {"[[-1,9,null]]", "[null]"},
           {"[[-1,8],[2,9]]", "[[[-1,8]],[[-1,9]]]"},
           {"[[-1,8],[-2,9]]", "[[[-1,8]],[]]"},
           {"null", "null"}})
    EXPECT_THROW(ways[1]->Read({&window}, reply(own, tops)), Error) << own;
}

TEST(SglangDialect, ExchangesWeightsInOneCall) {
  Script script;
  const char* path = "/update_weights_from_disk";
  script.Add(path, R"({"success":true,"message":"Succeeded to update model weights."})");
  const auto sglang = MakeSglangDialect();
  sglang->Swap(script.AsCaller(), "/new", "label");
  EXPECT_EQ(script.asked.at(0).second["model_path"], "/new");
  EXPECT_EQ(script.asked.at(0).second["flush_cache"], true);
  script.Add(path, R"({"success":false,"message":"Failed to update weights"})", 400);
  EXPECT_THAT(CaughtText([&] { sglang->Swap(script.AsCaller(), "/new", "label"); },
                         ErrorKind::kInfrastructure),
              HasSubstr("Failed to update weights"));
  script.Add(path, R"({"success":false,"message":"odd"})");
  EXPECT_THROW(sglang->Swap(script.AsCaller(), "/new", "label"), Error);
}

// ---- llama-server

TEST(LlamaServerDialect, IsStartedOnItsFileAndSaysWhatItHas) {
  Options options;
  options.model_file = "/models/x.gguf";
  options.concurrency = 4;
  options.max_length = 1024;
  const auto llama = MakeLlamaServerDialect();
  EXPECT_EQ(LineOf(llama->LaunchOf(options, PlaceFor())),
            "llama-server --model /models/x.gguf --alias checkpoint --host 127.0.0.1 --port 4711 "
            "--parallel 4 --ctx-size 4096 --threads 3");
  Script script;
  script.Add("/props", R"({"total_slots":4,"build_info":"b6900-abc",
      "default_generation_settings":{"n_ctx":1024}})");
  ServerFacts facts;
  llama->Learn(script.AsCaller(), &facts);
  EXPECT_EQ(facts.concurrency, 4);
  EXPECT_EQ(facts.max_length, 1024);
  EXPECT_EQ(facts.version, "b6900-abc");
  EXPECT_NE(llama->WhyNoSwap(true, false), "");
}

}  // namespace
}  // namespace evald::server
