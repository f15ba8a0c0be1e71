// vLLM's server (`vllm serve`). Requests and answers as version 0.32 has them; docs/engines.md says
// which were tried and what came of it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/jsonl.h"
#include "base/memory_limits.h"
#include "base/text.h"
#include "evald/error.h"
#include "worker/server/dialect.h"
#include "worker/server/log_reason.h"
#include "worker/server/server.h"
#include "worker/server/server_version.h"

namespace evald::server {
namespace {

constexpr const char* kVllmsReply = "vLLM's reply";
// logprob_token_ids may have so many (vllm/sampling_params.py).
constexpr size_t kVllmIdsMax = 128;
constexpr uint64_t kGiB = uint64_t{1} << 30;

std::string TokenKey(int32_t token) { return fmt::format("token_id:{}", token); }

double Logprob(const Json& value) {
  if (!value.is_number()) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{}: a log-probability is {}", kVllmsReply, ToLine(value)));
  }
  const auto logprob = value.get<double>();
  if (!std::isfinite(logprob) || logprob > 1e-3) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{}: a log-probability is {}", kVllmsReply, logprob));
  }
  return logprob;
}

// Windows whose one target follows the same tokens, as the choices of a question: the server
// computes the tokens once, by way of its prefix cache, and tells the log-probability of each
// target as a next token.
class NextTokens : public ScoringWay {
 public:
  explicit NextTokens(const CompletionsStyle& style) : style_(style) {}
  const char* name() const override { return "next token"; }
  const char* path() const override { return "/v1/completions"; }
  bool Takes(const ScoreWindow& window) const override { return window.targets.size() == 1; }
  size_t together() const override { return kVllmIdsMax; }

  Json Body(const std::vector<const ScoreWindow*>& windows) const override {
    std::vector<int32_t> ids;
    for (const ScoreWindow* window : windows) ids.push_back(window->targets[0]);
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    Json body = style_.extra;
    body.update({{"model", style_.model},
                 {"prompt", windows[0]->tokens},
                 {"max_tokens", 1},
                 {"temperature", 0.0},
                 {"logprobs", 0},
                 {"logprob_token_ids", ids},
                 {"return_tokens_as_token_ids", true},
                 {"return_token_ids", true}});
    return body;
  }

  std::vector<std::optional<Score>> Read(const std::vector<const ScoreWindow*>& windows,
                                         std::string_view body) const override {
    try {
      const Json reply = ParseJson(body, kVllmsReply);
      const Json choice = Field<std::vector<Json>>(reply, "choices", kVllmsReply).at(0);
      const Json logprobs = Field<Json>(choice, "logprobs", kVllmsReply);
      const Json top = Field<std::vector<Json>>(logprobs, "top_logprobs", kVllmsReply).at(0);
      const auto chosen = Field<std::vector<int32_t>>(choice, "token_ids", kVllmsReply).at(0);
      std::vector<std::optional<Score>> scores;
      for (const ScoreWindow* window : windows) {
        const int32_t target = window->targets[0];
        scores.emplace_back(
            Score{Logprob(Field<Json>(top, TokenKey(target), kVllmsReply)), chosen == target});
      }
      return scores;
    } catch (const std::out_of_range&) {
      throw Error(ErrorKind::kInfrastructure, fmt::format("{}: a list is empty", kVllmsReply));
    }
  }

 private:
  CompletionsStyle style_;
};

// Any window, by the log-probabilities of the prompt. With `cached` the server may take the begin
// of the prompt from its prefix cache. It then knows nothing of the cached tokens: the reply's
// entries for these are missing or, with the older of its model runners, without meaning. A window
// with such a target is left to the next way. "detokenize" must be false with it: the server would
// look for the text of meaningless tokens, and end.
class Prompt : public ScoringWay {
 public:
  Prompt(const CompletionsStyle& style, bool cached) : style_(style), cached_(cached) {}
  const char* name() const override { return cached_ ? "prompt, cached" : "prompt"; }
  const char* path() const override { return "/inference/v1/generate"; }
  bool Takes(const ScoreWindow&) const override { return true; }
  bool complete() const override { return !cached_; }

  Json Body(const std::vector<const ScoreWindow*>& windows) const override {
    Json sampling = {
        {"max_tokens", 1}, {"temperature", 0.0}, {"prompt_logprobs", 1}, {"detokenize", false}};
    if (cached_) sampling["skip_reading_prefix_cache"] = false;
    return {{"model", style_.model},
            {"token_ids", PromptOf(*windows[0])},
            {"sampling_params", sampling}};
  }

  std::vector<std::optional<Score>> Read(const std::vector<const ScoreWindow*>& windows,
                                         std::string_view body) const override {
    const ScoreWindow& window = *windows[0];
    const Json reply = ParseJson(body, kVllmsReply);
    const size_t length = window.tokens.size() + 1, first = length - window.targets.size();
    if (cached_) {
      const auto cached = CachedTokens(reply);
      if (!cached || *cached + 1 > static_cast<int64_t>(first)) return {std::nullopt};
    }
    const auto entries = Field<std::vector<Json>>(reply, "prompt_logprobs", kVllmsReply);
    const size_t missing = length - std::min(length, entries.size());  // cached tokens, in front
    if (entries.size() > length || missing > first) {
      throw Error(ErrorKind::kInfrastructure,
                  fmt::format("{}: {} log-probabilities of a prompt of {} tokens", kVllmsReply,
                              entries.size(), length));
    }
    Score score;
    for (size_t i = 0; i < window.targets.size(); ++i)
      Add(entries[first + i - missing], window.targets[i], &score);
    return {score};
  }

  bool LeavesToNext(int status, const std::string&) const override {
    return cached_ && status == 400;  // "Out of range float values": meaningless entries
  }

 private:
  static std::optional<int64_t> CachedTokens(const Json& reply) {
    const Json usage = FieldOr<Json>(reply, "usage", Json::object(), kVllmsReply);
    const Json details = usage.is_object()
                             ? FieldOr<Json>(usage, "prompt_tokens_details", Json(), kVllmsReply)
                             : Json();
    if (!details.is_object() || !details.contains("cached_tokens")) return std::nullopt;
    return FieldOr<int64_t>(details, "cached_tokens", 0, kVllmsReply);
  }

  // An entry: {"<id>": {"logprob": ...}, ...} of the prompt's token and of the likeliest one.
  static void Add(const Json& entry, int32_t target, Score* score) {
    if (!entry.is_object()) {
      throw Error(ErrorKind::kInfrastructure,
                  fmt::format("{}: no log-probability for a token of the prompt", kVllmsReply));
    }
    const double own = Logprob(Field<Json>(Field<Json>(entry, std::to_string(target), kVllmsReply),
                                           "logprob", kVllmsReply));
    score->logprob += own;
    for (const auto& [id, value] : entry.items()) {
      const int64_t other = std::strtoll(id.c_str(), nullptr, 10);
      const double logprob = Logprob(Field<Json>(value, "logprob", kVllmsReply));
      const bool before = logprob > own || (logprob == own && other < target);
      if (other != target && before) score->is_greedy = false;
    }
  }

  CompletionsStyle style_;
  bool cached_;
};

// vLLM answers false while a request uses the cache.
bool ResetPrefixCache(const Caller& call) {
  const http_client::Response reply = call("/reset_prefix_cache", Json::object(), kSwapStepTimeout);
  return reply.ok() && FieldOr(ParseJson(reply.body, "/reset_prefix_cache"), "success", false,
                               "/reset_prefix_cache");
}

http_client::Response Must(const Caller& call, const std::string& path, const Json& body) {
  http_client::Response reply = call(path, body, kSwapStepTimeout);
  if (!reply.ok()) {
    throw Error(ErrorKind::kInfrastructure, fmt::format("{}: {}", path, WhyNot(reply)));
  }
  return reply;
}

class Vllm : public Dialect {
 public:
  bool takes_dtype() const override { return true; }
  Launch LaunchOf(const Options& options, const LaunchSetup& setup) const override;
  bool on_socket() const override { return true; }
  // On a processor VLLM_BATCH_INVARIANT ends the server at the first request (0.32).
  bool Deterministic(const Options& options, bool on_gpu) const override {
    return options.deterministic && on_gpu;
  }
  std::string Install() const override { return "pip install 'vllm>=0.32'"; }
  std::string Reason(const std::string& log) const override { return PythonReason(log); }
  void Learn(const Caller& call, ServerFacts* facts) const override;
  Json GenerateExtra() const override { return {{"return_token_ids", true}}; }
  bool ShowsSpecialTokens() const override { return true; }
  std::vector<std::unique_ptr<ScoringWay>> ScoringWays(
      const CompletionsStyle& style) const override {
    std::vector<std::unique_ptr<ScoringWay>> ways;
    ways.push_back(std::make_unique<NextTokens>(style));
    ways.push_back(std::make_unique<Prompt>(style, true));
    ways.push_back(std::make_unique<Prompt>(style, false));
    ways.push_back(EchoWay(style));
    return ways;
  }
  bool EmptyCache(const Caller& call) const override { return ResetPrefixCache(call); }
  // Seen with 0.32: on a processor the output layer is a packed copy. A swap renews the copy only
  // if the checkpoint has a tensor for it.
  std::string WhyNoSwap(bool on_gpu, bool tied) const override {
    return on_gpu || !tied
               ? ""
               : "on a processor vLLM does not exchange an output layer that is tied to "
                 "the embedding";
  }
  void Swap(const Caller& call, const std::filesystem::path& checkpoint,
            const std::string& label) const override;
};

// Whole GiB for keys and values on a processor: a quarter of the memory that is available.
uint64_t CacheGiB(const Options& options) {
  const uint64_t bytes = options.kv_cache > 0 ? options.kv_cache : AvailableMemory() / 4;
  return std::clamp<uint64_t>(bytes / kGiB, 1, 1024);
}

Launch Vllm::LaunchOf(const Options& options, const LaunchSetup& setup) const {
  const bool on_gpu = !setup.gpus.empty();
  Launch launch;
  launch.command = options.command.empty() ? std::vector<std::string>{"vllm"} : options.command;
  const auto add = [&](std::string word) { launch.command.push_back(std::move(word)); };
  add("serve");
  add(setup.checkpoint);
  add("--uds=" + setup.socket.string());
  add("--served-model-name=checkpoint");
  add("--dtype=" + setup.dtype);
  add("--generation-config=vllm");  // evald sends all settings itself
  add("--max-logprobs=20");
  add("--enable-scale-out");              // /inference/v1/generate
  add("--enable-prompt-tokens-details");  // cached_tokens
  add("--disable-uvicorn-access-log");    // a line for each request
  if (setup.gpus.size() > 1) add(fmt::format("--tensor-parallel-size={}", setup.gpus.size()));
  if (options.max_length > 0) add(fmt::format("--max-model-len={}", options.max_length));
  if (options.concurrency > 0) add(fmt::format("--max-num-seqs={}", options.concurrency));
  if (on_gpu && options.memory_share > 0)
    add(fmt::format("--gpu-memory-utilization={}", options.memory_share));
  if (!on_gpu) add("--enforce-eager");  // compiling takes minutes on a processor
  for (const std::string& argument : options.arguments) add(argument);
  launch.environment = {{"VLLM_SERVER_DEV_MODE", "1"},  // /server_info, /collective_rpc
                        {"VLLM_MAX_STOP_STRINGS", std::to_string(kStopsSent)},
                        {"VLLM_NO_USAGE_STATS", "1"},
                        {"DO_NOT_TRACK", "1"},
                        {"HF_HUB_OFFLINE", "1"}};
  if (on_gpu) {
    launch.environment["CUDA_VISIBLE_DEVICES"] = Join(setup.gpus, ",");
    if (options.deterministic) launch.environment["VLLM_BATCH_INVARIANT"] = "1";
  } else {
    launch.environment["VLLM_CPU_KVCACHE_SPACE"] = std::to_string(CacheGiB(options));
    launch.environment["VLLM_CPU_OMP_THREADS_BIND"] = "nobind";
    launch.environment["OMP_NUM_THREADS"] = std::to_string(setup.threads);
    // Else the first log-probability waits half a minute for a compiler.
    launch.environment["TORCHDYNAMO_DISABLE"] = "1";
  }
  for (const auto& [name, value] : options.environment) launch.environment[name] = value;
  return launch;
}

void Vllm::Learn(const Caller& call, ServerFacts* facts) const {
  const http_client::Response version = call("/version", Json(), kQuestionTimeout);
  if (version.ok()) {
    facts->version =
        FieldOr<std::string>(ParseJson(version.body, "/version"), "version", "", "/version");
  }
  RefuseOlder("vLLM", facts->version, {0, 32}, Install());
  const http_client::Response info =
      call("/server_info?config_format=json", Json(), kQuestionTimeout);
  if (!info.ok()) return;
  const Json json = ParseJson(info.body, "/server_info");
  facts->concurrency = IntegerAt(json, {"vllm_config", "scheduler_config", "max_num_seqs"});
  facts->stops_max = IntegerAt(json, {"vllm_env", "VLLM_MAX_STOP_STRINGS"});
}

void Vllm::Swap(const Caller& call, const std::filesystem::path& checkpoint,
                const std::string& label) const {
  Must(call, "/pause?mode=wait", Json::object());
  Must(call, "/collective_rpc",
       {{"method", "reload_weights"}, {"kwargs", {{"weights_path", checkpoint.string()}}}});
  // Keys and values of the old weights must go, which reloading does not do.
  if (!ResetPrefixCache(call)) {
    throw Error(ErrorKind::kInfrastructure, "/reset_prefix_cache: the cache could not be cleared");
  }
  Must(call, "/update_weight_version", {{"new_version", label}});
  Must(call, "/resume", Json::object());
}

}  // namespace

std::unique_ptr<Dialect> MakeVllmDialect() { return std::make_unique<Vllm>(); }

}  // namespace evald::server
