// SGLang's server (sglang.launch_server). Written from its public source; not run. Requests:
// python/sglang/srt/managers/io_struct.py (seen at commit 001067fff), GenerateReqInput and
// UpdateWeightFromDiskReqInput. Answers: meta_info as its OpenAI server reads it
// (srt/entrypoints/openai/serving_completions.py), and srt/entrypoints/http_server.py.
#include <fmt/format.h>

#include <cmath>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "worker/server/dialect.h"
#include "worker/server/log_reason.h"
#include "worker/server/server.h"
#include "worker/server/server_version.h"

namespace evald::server {
namespace {

constexpr const char* kSglangsReply = "SGLang's reply";
constexpr size_t kSglangIdsMax = 128;

struct Entry {
  double logprob = 0;
  int32_t token = 0;
};

// [logprob, token id, text or null].
Entry EntryOf(const Json& json) {
  if (!json.is_array() || json.size() < 2 || !json[0].is_number() || !json[1].is_number_integer()) {
    throw Error(
        ErrorKind::kInfrastructure,
        fmt::format("{}: expected [logprob, token id, …], found {}", kSglangsReply, ToLine(json)));
  }
  const Entry entry{json[0].get<double>(), json[1].get<int32_t>()};
  if (!std::isfinite(entry.logprob) || entry.logprob > 1e-3) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{}: a log-probability is {}", kSglangsReply, entry.logprob));
  }
  return entry;
}

Json MetaOf(const Json& reply) { return Field<Json>(reply, "meta_info", kSglangsReply); }

// Windows whose one target follows the same tokens: token_ids_logprob names the ids whose
// log-probabilities as next tokens are wanted.
class SglangNextTokens : public ScoringWay {
 public:
  const char* name() const override { return "next token"; }
  const char* path() const override { return "/generate"; }
  bool Takes(const ScoreWindow& window) const override { return window.targets.size() == 1; }
  size_t together() const override { return kSglangIdsMax; }

  Json Body(const std::vector<const ScoreWindow*>& windows) const override {
    std::vector<int32_t> ids;
    for (const ScoreWindow* window : windows) ids.push_back(window->targets[0]);
    return {{"input_ids", windows[0]->tokens},
            {"sampling_params", {{"max_new_tokens", 1}, {"temperature", 0.0}}},
            {"return_logprob", true},
            {"token_ids_logprob", ids}};
  }

  // meta_info.output_token_ids_logprobs[0]: an entry for each id; output_ids: the chosen token.
  std::vector<std::optional<Score>> Read(const std::vector<const ScoreWindow*>& windows,
                                         std::string_view body) const override {
    const Json reply = ParseJson(body, kSglangsReply);
    const auto chosen = Field<std::vector<int32_t>>(reply, "output_ids", kSglangsReply);
    const auto steps =
        Field<std::vector<Json>>(MetaOf(reply), "output_token_ids_logprobs", kSglangsReply);
    if (chosen.empty() || steps.empty() || !steps[0].is_array())
      throw Error(ErrorKind::kInfrastructure, fmt::format("{}: a list is empty", kSglangsReply));
    std::vector<std::optional<Score>> scores;
    for (const ScoreWindow* window : windows) {
      std::optional<Score> score;
      for (const Json& json : steps[0]) {
        const Entry entry = EntryOf(json);
        if (entry.token == window->targets[0])
          score = Score{entry.logprob, chosen[0] == entry.token};
      }
      scores.push_back(score);
    }
    return scores;
  }
};

// Any window, by the log-probabilities of the prompt from the token before the first target on. The
// server takes what lies before from its radix cache. The value of the token at the start is null.
class SglangPrompt : public ScoringWay {
 public:
  const char* name() const override { return "prompt"; }
  const char* path() const override { return "/generate"; }
  bool Takes(const ScoreWindow&) const override { return true; }
  bool complete() const override { return true; }

  Json Body(const std::vector<const ScoreWindow*>& windows) const override {
    return {{"input_ids", PromptOf(*windows[0])},
            {"sampling_params", {{"max_new_tokens", 1}, {"temperature", 0.0}}},
            {"return_logprob", true},
            {"logprob_start_len", windows[0]->score_from},
            {"top_logprobs_num", 1}};
  }

  // meta_info.input_token_logprobs: entries of the prompt's tokens; the last ones are the targets'.
  // meta_info.input_top_logprobs: for each a list with the likeliest one.
  std::vector<std::optional<Score>> Read(const std::vector<const ScoreWindow*>& windows,
                                         std::string_view body) const override {
    const std::vector<int32_t>& targets = windows[0]->targets;
    const Json meta = MetaOf(ParseJson(body, kSglangsReply));
    const auto own = Field<std::vector<Json>>(meta, "input_token_logprobs", kSglangsReply);
    const auto tops = Field<std::vector<Json>>(meta, "input_top_logprobs", kSglangsReply);
    if (own.size() < targets.size() || tops.size() != own.size()) {
      throw Error(ErrorKind::kInfrastructure,
                  fmt::format("{}: {} and {} log-probabilities for {} tokens", kSglangsReply,
                              own.size(), tops.size(), targets.size()));
    }
    Score score;
    const size_t first = own.size() - targets.size();
    for (size_t i = 0; i < targets.size(); ++i) {
      const Entry entry = EntryOf(own[first + i]);
      if (entry.token != targets[i] || !tops[first + i].is_array() || tops[first + i].empty()) {
        throw Error(ErrorKind::kInfrastructure,
                    fmt::format("{}: found token {}, expected {} and the likeliest one",
                                kSglangsReply, entry.token, targets[i]));
      }
      const Entry best = EntryOf(tops[first + i][0]);
      score.logprob += entry.logprob;
      const bool likeliest =
          best.token == targets[i] || (best.logprob == entry.logprob && targets[i] < best.token);
      score.is_greedy = score.is_greedy && likeliest;
    }
    return {score};
  }
};

class Sglang : public Dialect {
 public:
  bool takes_dtype() const override { return true; }
  Launch LaunchOf(const Options& options, const LaunchSetup& setup) const override;
  std::string Install() const override { return "pip install 'sglang>=0.5.23'"; }
  std::string Reason(const std::string& log) const override { return PythonReason(log); }
  void Learn(const Caller& call, ServerFacts* facts) const override;
  // CompletionRequest.skip_special_tokens: srt/entrypoints/openai/protocol.py.
  bool ShowsSpecialTokens() const override { return true; }
  std::vector<std::unique_ptr<ScoringWay>> ScoringWays(
      const CompletionsStyle& style) const override {
    std::vector<std::unique_ptr<ScoringWay>> ways;
    ways.push_back(std::make_unique<SglangNextTokens>());
    ways.push_back(std::make_unique<SglangPrompt>());
    ways.push_back(EchoWay(style));
    return ways;
  }
  std::string WhyNoSwap(bool, bool) const override { return ""; }
  // Refused while requests are under way.
  bool EmptyCache(const Caller& call) const override {
    return call("/flush_cache", Json::object(), kSwapStepTimeout).ok();
  }
  void Swap(const Caller& call, const std::filesystem::path& checkpoint,
            const std::string& label) const override;
};

// Flags: srt/server_args.py.
Launch Sglang::LaunchOf(const Options& options, const LaunchSetup& setup) const {
  Launch launch;
  launch.command = options.command.empty()
                       ? std::vector<std::string>{"python3", "-m", "sglang.launch_server"}
                       : options.command;
  const auto add = [&](std::string word) { launch.command.push_back(std::move(word)); };
  add("--model-path=" + setup.checkpoint.string());
  add("--served-model-name=checkpoint");
  add("--host=127.0.0.1");
  add(fmt::format("--port={}", setup.port));
  add("--dtype=" + setup.dtype);
  add("--sampling-defaults=openai");  // evald sends all settings itself
  if (setup.gpus.size() > 1) add(fmt::format("--tp-size={}", setup.gpus.size()));
  if (options.max_length > 0) add(fmt::format("--context-length={}", options.max_length));
  if (options.concurrency > 0) add(fmt::format("--max-running-requests={}", options.concurrency));
  if (options.memory_share > 0) add(fmt::format("--mem-fraction-static={}", options.memory_share));
  if (options.deterministic) add("--enable-deterministic-inference");
  for (const std::string& argument : options.arguments) add(argument);
  launch.environment = {{"HF_HUB_OFFLINE", "1"}};
  if (!setup.gpus.empty()) launch.environment["CUDA_VISIBLE_DEVICES"] = Join(setup.gpus, ",");
  for (const auto& [name, value] : options.environment) launch.environment[name] = value;
  return launch;
}

// /get_server_info: the arguments of the server, with "version" and "max_running_requests".
void Sglang::Learn(const Caller& call, ServerFacts* facts) const {
  facts->stops_max = kStopsSent;  // SamplingParams.stop is a list without a limit
  const http_client::Response reply = call("/get_server_info", Json(), kQuestionTimeout);
  if (!reply.ok()) return;
  const Json info = ParseJson(reply.body, "/get_server_info");
  facts->version = FieldOr<std::string>(info, "version", "", "/get_server_info");
  RefuseOlder("SGLang", facts->version, {0, 5, 23}, Install());
  const Json most = FieldOr<Json>(info, "max_running_requests", Json(), "/get_server_info");
  if (most.is_number_integer()) facts->concurrency = most.get<int>();
}

// {"success": ..., "message": ...}, with status 400 if it failed. The rollback that the server then
// makes is wrong (sglang issue 30749), so that it must be started anew.
void Sglang::Swap(const Caller& call, const std::filesystem::path& checkpoint,
                  const std::string& label) const {
  const char* path = "/update_weights_from_disk";
  const http_client::Response reply = call(
      path, {{"model_path", checkpoint.string()}, {"flush_cache", true}, {"weight_version", label}},
      kSwapStepTimeout);
  if (!reply.ok())
    throw Error(ErrorKind::kInfrastructure, fmt::format("{}: {}", path, WhyNot(reply)));
  const Json answer = ParseJson(reply.body, path);
  if (!FieldOr(answer, "success", false, path)) {
    throw Error(
        ErrorKind::kInfrastructure,
        fmt::format("{}: {}", path, FieldOr<std::string>(answer, "message", "no success", path)));
  }
}

}  // namespace

std::unique_ptr<Dialect> MakeSglangDialect() { return std::make_unique<Sglang>(); }

}  // namespace evald::server
