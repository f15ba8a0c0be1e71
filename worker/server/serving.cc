#include "worker/server/serving.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "evald/error.h"
#include "http_client/retry.h"

namespace evald::server {
namespace {

constexpr int kConcurrencyMax = 4096;
constexpr int kConcurrency = 8;  // of a server that does not say how much it computes at once

std::vector<std::string> GpusOf(const std::string& device) {
  constexpr std::string_view kGpu = "cuda:";
  return device.starts_with(kGpu) ? std::vector<std::string>{device.substr(kGpu.size())}
                                  : std::vector<std::string>{};
}

}  // namespace

bool Refused(const http_client::Response& reply) {
  return reply.answered() && reply.status != 200 && !http_client::IsTemporary(reply.status);
}

Serving::Serving(const EngineOptions& options)
    : gpus_(GpusOf(options.device)),
      options_(ReadOptions(options.name, options.settings)),
      roots_(options.roots),
      server_(options.name, options_, {options.roots, gpus_, options.threads}) {
  CompletionsStyle& style = setup_.style;
  style.tokens = options_.tokens;
  style.send_seed = options_.send_seed;
  style.seed = options.seed;
  style.extra = options_.extra_body;
  setup_.extra = server_.dialect().GenerateExtra();
  setup_.shows_special = server_.dialect().ShowsSpecialTokens();
}

int Serving::concurrency() const {
  if (options_.concurrency > 0) return options_.concurrency;
  const int most = server_.facts().concurrency;
  return most > 0 ? std::min(most, kConcurrencyMax) : kConcurrency;
}

void Serving::StartServer(const std::filesystem::path& directory) {
  ++starts_;
  server_.Start(directory);
  ReadCheckpoint(directory);
  Prepare();
}

// Returns why the server has to be started anew; "" if the weights were exchanged.
std::string Serving::TrySwap(const std::filesystem::path& directory) {
  std::string why_not = server_.WhyNoSwap(directory);
  if (!why_not.empty()) return why_not;
  const Scorer before = std::exchange(scorer_, Scorer());
  try {
    server_.Swap(directory);
    ReadCheckpoint(directory);
    Prepare();
    if (before.offered() && !scorer_.offered()) why_not = scorer_.reason();
    if (scorer_.offered() && scorer_.values() == before.values())
      why_not = "the answers are those of the checkpoint before";
  } catch (const Error& e) {
    why_not = e.message();
  }
  if (!why_not.empty())
    log::Warn("weights were to be exchanged: {}; the server is started anew", why_not);
  return why_not;
}

void Serving::Load(const std::filesystem::path& directory) {
  const int64_t begin = MonotonicMicros();
  report_ = Json::object();
  const std::string why_not = TrySwap(directory);
  if (!why_not.empty()) {
    scorer_ = Scorer();
    StartServer(directory);
  }
  const ServerFacts& facts = server_.facts();
  report_["bytes"] = 0;
  report_["seconds"] = static_cast<double>(MonotonicMicros() - begin) / 1e6;
  report_["server"] = server_.program();
  report_["started_here"] = server_.started_here();
  report_["model"] = facts.model;
  if (!facts.version.empty()) report_["version"] = facts.version;
  if (server_.started_here()) {
    report_["swapped"] = why_not.empty();
    if (!why_not.empty()) report_["why_not"] = why_not;
    report_["server_starts"] = starts_;
  }
  report_["scoring"] = scorer_.Report();
}

void Serving::Restart() {
  ++starts_;
  server_.Restart();
  Prepare();
}

void Serving::ReadCheckpoint(const std::filesystem::path& directory) {
  const ReadFolder folder(directory, roots_);
  setup_.style.generation = GenerationConfig::Read(folder, options_.generation_config);
  setup_.tokenizer = nullptr;
  try {
    tokenizer_ = Tokenizer::Load(folder);
    setup_.tokenizer = tokenizer_.get();
  } catch (const Error& e) {
    tokenizer_.reset();
    log::Warn("the checkpoint's tokenizer is not used: {}", e.what());
  }
}

// A server that has just started, or has other weights: a first answer, and the self-test.
void Serving::Prepare() {
  const ServerFacts& facts = server_.facts();
  setup_.style.model = facts.model;
  setup_.style.max_length = facts.max_length;
  setup_.style.stops_max =
      static_cast<size_t>(facts.stops_max > 0 ? facts.stops_max : options_.stops_max);
  WarmUp();
  scorer_ = JudgeScoring();
}

// Some servers report that they are healthy, but load the model with the first request.
void Serving::WarmUp() {
  Request request;
  request.context = "Hello";
  if (options_.tokens) {
    if (!tokenizer_) {
      throw Error(ErrorKind::kInput, "`prompt: tokens` needs a tokenizer that evald understands",
                  "use the engine 'openai' with `prompt: text`");
    }
    request.context_tokens = tokenizer_->Encode(request.context, true);
  }
  request.sampling.max_gen_toks = 1;
  CompletionsStyle plain = setup_.style;
  plain.generation = {};
  const http_client::Response reply =
      server_.Ask(kCompletions, GenerateBody(plain, request), options_.ready_timeout);
  if (Refused(reply)) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: the server refused a first request with {}",
                            server_.Name(kCompletions), WhyNot(reply)),
                options_.tokens ? "if the server takes no token ids, use `prompt: text`"
                                : "the server must offer /v1/completions");
  }
  if (!reply.ok()) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{}: a first request failed: {}{}", server_.Name(kCompletions),
                            WhyNot(reply), server_.LogTail()),
                "the server must offer /v1/completions");
  }
  ParseCompletion(reply.body);
}

Scorer Serving::JudgeScoring() {
  if (!options_.scoring) return Scorer("switched off by `scoring: false`");
  if (!options_.tokens) return Scorer("prompts go as text; `prompt: tokens` is needed for scoring");
  const auto post = [this](const std::string& path, const Json& body) {
    return server_.Ask(path, body, options_.request_timeout);
  };
  const auto ask = [&](const Json& body) {
    const http_client::Response reply = post(kCompletions, body);
    if (!reply.ok()) throw Error(ErrorKind::kInfrastructure, WhyNot(reply));
    return ParseCompletion(reply.body);
  };
  return Scorer(server_.dialect().ScoringWays(setup_.style), setup_.style, *tokenizer_,
                server_.facts().max_length, ask, post);
}

}  // namespace evald::server
