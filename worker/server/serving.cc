#include "worker/server/serving.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/device_name.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "evald/error.h"
#include "http_client/retry.h"
#include "worker/server/determinism_probe.h"
#include "worker/server/server_parity.h"

namespace evald::server {
namespace {

constexpr int kConcurrencyMax = 4096;
constexpr int kConcurrency = 8;  // of a server that does not say how much it computes at once

}  // namespace

bool Refused(const http_client::Response& reply) {
  return reply.answered() && reply.status != 200 && !http_client::IsTemporary(reply.status);
}

Serving::Serving(const EngineOptions& options)
    : gpus_(GpuUuids(options.device)),
      options_(ReadOptions(options.name, options.settings)),
      roots_(options.roots),
      server_(options.name, options_, {options.roots, gpus_, options.threads}),
      parity_(options_.parity_budget, options.threads) {
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
  RequireParity();
}

// Returns why the server has to be started anew; "" if the weights were exchanged.
std::string Serving::TrySwap(const std::filesystem::path& directory) {
  std::string why_not;
  Scorer before = std::exchange(scorer_, Scorer());
  try {
    server_.Swap(directory);
    ReadCheckpoint(directory);
    Greet();
    why_not = WhyNotExchanged(std::move(before));
    if (why_not.empty()) Probe();
  } catch (const Error& e) {
    why_not = e.message();
  }
  if (!why_not.empty())
    log::Warn("weights were to be exchanged: {}; the server is started anew", why_not);
  return why_not;
}

// Whether the server computes with the new weights. The parity check shows this best: it asks in
// the ways that passed the self-test when the server started, and compares with evald's own engine.
// If there is nothing to compare with, the self-test is made again.
std::string Serving::WhyNotExchanged(Scorer before) {
  using Outcome = parity::Report::Outcome;
  constexpr const char* kStale = "the answers are those of the checkpoint before";
  const bool scored = before.offered();
  const std::vector<double> values = before.values();
  const std::vector<std::optional<double>> compared = std::exchange(compared_, {});
  scorer_ = std::move(before);
  const parity::Report report = CheckParity();
  if (report.outcome == Outcome::kDiffers) return report.reason;
  if (report.outcome == Outcome::kAgrees) {
    // Weights of two near steps may both be near enough, but do not give the same bits.
    const bool stale = !compared_.empty() && compared_.size() <= compared.size() &&
                       std::equal(compared_.begin(), compared_.end(), compared.begin());
    values_are_older_ = true;
    return stale ? kStale : "";
  }
  scorer_ = JudgeScoring();
  if (scored && !scorer_.offered()) return scorer_.reason();
  const bool older = std::exchange(values_are_older_, false);
  if (scored && older) return "no scores of the weights before are there to be compared";
  return scorer_.offered() && scorer_.values() == values ? kStale : "";
}

void Serving::Load(const std::filesystem::path& directory) {
  const int64_t begin = MonotonicMicros();
  report_ = Json::object();
  const std::string no_swap = server_.WhyNoSwap(directory);
  const bool quick = no_swap.empty();
  parity_.Begin(directory, TypeOf(directory), quick);
  const std::string why_not = quick ? TrySwap(directory) : no_swap;
  if (!why_not.empty()) {
    scorer_ = Scorer();
    if (quick) parity_.Begin(directory, TypeOf(directory), false);
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
  if (determinism_)
    report_["determinism"] = {{"shown", determinism_->shown}, {"reason", determinism_->reason}};
}

void Serving::Restart() {
  ++starts_;
  server_.Restart();
  Prepare();
  RequireParity();
}

// The type in which the server computes. One that evald does not start may choose another type than
// the checkpoint's, but hardly one that is coarser than bf16.
parity::NumberType Serving::TypeOf(const std::filesystem::path& directory) const {
  if (const auto type = parity::NumberTypeOf(options_.dtype)) return *type;
  if (!server_.dialect().takes_dtype()) return parity::NumberType::kBf16;
  return parity::TypeOfWeights(directory);
}

// The server's greedy text, without the checkpoint's settings but for its end tokens.
std::string Serving::Continue(const std::string& prompt, int tokens) {
  PlanSetup setup = setup_;
  setup.style.generation = end_tokens_only_;
  Request request;
  request.context = prompt;
  if (tokenizer_) request.context_tokens = tokenizer_->Encode(prompt, true);
  request.sampling.max_gen_toks = tokens;
  const Plan plan = PlanFor(setup, request);
  const http_client::Response reply =
      server_.Ask(kCompletions, ParseJson(plan.body, "a request"), options_.request_timeout);
  if (!reply.ok())
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{}: {}", server_.Name(kCompletions), WhyNot(reply)));
  return GenerationOf(plan.request, ParseAnswer(reply.body, setup_.style), tokenizer_.get(),
                      plan.end_tokens)
      .text;
}

parity::Report Serving::CheckParity() {
  const PostJson post = [this](const std::string& path, const Json& body) {
    return server_.Ask(path, body, options_.request_timeout);
  };
  parity::Report report;
  const std::string tokens =
      tokenizer_ && options_.parity_budget.count() > 0
          ? OtherTokens(server_.dialect(), server_.facts().model, *tokenizer_, post)
          : "";
  if (!tokens.empty()) {
    report.outcome = parity::Report::Outcome::kDiffers;
    report.reason = tokens;
    report.causes = "see whether the server reads another tokenizer than the checkpoint's";
  } else if (!scorer_.offered()) {
    report = parity_.CheckTexts(
        [&](const std::string& prompt, int tokens) { return Continue(prompt, tokens); });
  } else {
    compared_.clear();
    report = parity_.Check([&](const std::vector<ScoreWindow>& windows) {
      auto scores = ScoresNow(scorer_, windows, post);
      compared_.insert(compared_.end(), scores.begin(), scores.end());
      return scores;
    });
  }
  report_["parity"] = report.ToJson();
  verdict_ = report.Summary();
  return report;
}

void Serving::RequireParity() {
  const parity::Report report = CheckParity();
  if (report.outcome == parity::Report::Outcome::kSkipped)
    log::Info("parity check: skipped: {}", report.reason);
  if (report.outcome != parity::Report::Outcome::kDiffers) return;
  throw Error(ErrorKind::kInput,
              fmt::format("the server '{}' does not compute this checkpoint: {}", server_.program(),
                          report.reason),
              report.causes + "; `parity_seconds: 0` takes the server's answers as they are");
}

void Serving::ReadCheckpoint(const std::filesystem::path& directory) {
  const ReadFolder folder(directory, roots_);
  setup_.style.generation = GenerationConfig::Read(folder, options_.generation_config);
  end_tokens_only_ = GenerationConfig::Read(folder, GenerationConfig::Use::kIgnore);
  setup_.tokenizer = nullptr;
  try {
    tokenizer_ = Tokenizer::Load(folder);
    setup_.tokenizer = tokenizer_.get();
  } catch (const Error& e) {
    tokenizer_.reset();
    log::Warn("the checkpoint's tokenizer is not used: {}", e.what());
  }
}

// A server that has just started: a first answer, and the self-test.
void Serving::Prepare() {
  Greet();
  scorer_ = JudgeScoring();
  values_are_older_ = false;
  Probe();
}

// A server that has just started, or has other weights: what is sent to it, and a first answer.
void Serving::Greet() {
  const ServerFacts& facts = server_.facts();
  setup_.style.model = facts.model;
  setup_.style.max_length = facts.max_length;
  setup_.style.stops_max =
      static_cast<size_t>(facts.stops_max > 0 ? facts.stops_max : options_.stops_max);
  WarmUp();
}

void Serving::Probe() {
  determinism_.reset();
  if (!server_.dialect().Deterministic(options_, on_gpu())) return;
  determinism_ = ProbeDeterminism(&server_, setup_.style, tokenizer_.get());
  if (!determinism_->shown)
    log::Warn("the server is not deterministic, as it was to be: {}", determinism_->reason);
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
  plain.reply_model.clear();  // another checkpoint may have another name
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
  setup_.style.reply_model = ParseAnswer(reply.body, plain).model;
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
