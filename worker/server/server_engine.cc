#include "worker/server/server_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <thread>

#include "base/clock.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "evald/error.h"
#include "http_client/transfers.h"
#include "tokenizer/tokenizer.h"
#include "worker/server/completions.h"
#include "worker/server/fit.h"
#include "worker/server/options.h"
#include "worker/server/self_test.h"
#include "worker/server/server.h"

namespace evald {
namespace {

using namespace server;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// Whether the server refused the request itself: asking again would not help.
bool Refused(const http_client::Response& reply) {
  return reply.answered() && reply.status != 200 && !http_client::IsTemporary(reply.status);
}

class ServerEngine : public Engine {
 public:
  explicit ServerEngine(const EngineOptions& options)
      : name_(options.name),
        options_(ReadOptions(options.settings)),
        roots_(options.roots),
        server_(options_, options.roots) {
    style_.tokens = options_.tokens;
    style_.stops_max = static_cast<size_t>(options_.stops_max);
    style_.send_seed = options_.send_seed;
    style_.seed = options.seed;
    style_.extra = options_.extra_body;
  }

  EngineInfo Info() const override;
  void Load(const std::filesystem::path& directory) override;
  void Submit(uint64_t tag, Request request) override;
  std::vector<Finished> Step(std::chrono::milliseconds budget) override;
  size_t pending() const override { return jobs_.size(); }
  void CancelAll() override {
    http_.CancelAll();
    jobs_.clear();
  }
  Json LoadReport() const override { return report_; }

 private:
  struct Job {
    Request request;
    PromptFit fit;
    std::string body;
    int attempts = 0;
    int timeouts = 0;
    bool under_way = false;
    Clock::time_point not_before;
  };

  void WarmUp();
  ScoringVerdict JudgeScoring();
  Completion AskOnce(const Json& body);
  int PromptTokens(const Request& request) const;
  void StartDue();
  std::chrono::milliseconds UntilNextStart(std::chrono::milliseconds budget) const;
  Generation Answer(const Job& job, const std::string& body) const;
  void Retry(Job* job, const http_client::Response& reply, const std::string& why);
  void Take(uint64_t tag, const http_client::Response& reply, std::vector<Finished>* finished);

  std::string name_;  ///< the engine's in eval.yaml: a preset of this client has its own
  Options options_;
  ReadRoots roots_;
  Server server_;
  http_client::Transfers http_;
  std::mt19937_64 random_{std::random_device{}()};  // for pauses only
  CompletionsStyle style_;
  std::unique_ptr<Tokenizer> tokenizer_;  ///< null if the checkpoint's tokenizer is not understood
  ScoringVerdict scoring_;
  std::map<uint64_t, Job> jobs_;
  Json report_ = Json::object();
};

EngineInfo ServerEngine::Info() const {
  EngineInfo info;
  info.name = name_;
  info.version = server_.model();
  info.kinds = {RequestKind::kGenerateUntil};
  // Only after Load is it known whether the server can score.
  if (scoring_.right) info.kinds.push_back(RequestKind::kLoglikelihood);
  info.max_length = server_.max_length();
  info.deterministic = options_.deterministic;
  info.wants_tokens = options_.tokens;
  info.concurrency = options_.concurrency;
  info.device = name_ + ", " + server_.model();
  return info;
}

void ServerEngine::Load(const std::filesystem::path& directory) {
  const int64_t begin = MonotonicMicros();
  scoring_ = {};
  server_.Start(directory);
  style_.model = server_.model();
  style_.max_length = server_.max_length();
  style_.generation = GenerationConfig::Read(directory, options_.generation_config);
  try {
    tokenizer_ = Tokenizer::Load(ReadFolder(directory, roots_));
  } catch (const Error& e) {
    tokenizer_.reset();
    log::Warn("the checkpoint's tokenizer is not used: {}", e.what());
  }
  WarmUp();
  scoring_ = JudgeScoring();
  report_ = Json::object();
  report_["bytes"] = 0;
  report_["seconds"] = static_cast<double>(MonotonicMicros() - begin) / 1e6;
  report_["server"] = options_.command.empty() ? server_.url() : options_.command[0];
  report_["started_here"] = !options_.command.empty();
  report_["model"] = server_.model();
  report_["scoring"] = {{"offered", scoring_.right}, {"reason", scoring_.reason}};
}

// Some servers report that they are healthy, but load the model with the first request.
void ServerEngine::WarmUp() {
  Request request;
  request.context = "Hello";
  if (style_.tokens) {
    if (!tokenizer_) {
      throw Error(ErrorKind::kInput, "`prompt: tokens` needs a tokenizer that evald understands",
                  "use `prompt: text`");
    }
    request.context_tokens = tokenizer_->Encode(request.context, true);
  }
  request.sampling.max_gen_toks = 1;
  CompletionsStyle plain = style_;
  plain.generation = {};
  const http_client::Response reply =
      server_.Complete(GenerateBody(plain, request), options_.ready_timeout);
  if (Refused(reply)) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: the server refused a first request with {}",
                            server_.completions_url(), WhyNot(reply)),
                style_.tokens ? "if the server takes no token ids, use `prompt: text`"
                              : "the server must offer /v1/completions");
  }
  if (!reply.ok()) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{}: a first request failed: {}{}", server_.completions_url(),
                            WhyNot(reply), server_.LogTail()),
                "the server must offer /v1/completions");
  }
  ParseCompletion(reply.body);
}

Completion ServerEngine::AskOnce(const Json& body) {
  const http_client::Response reply = server_.Complete(body, options_.request_timeout);
  if (!reply.ok()) throw Error(ErrorKind::kInfrastructure, WhyNot(reply));
  return ParseCompletion(reply.body);
}

ScoringVerdict ServerEngine::JudgeScoring() {
  if (!options_.scoring) return {false, "switched off by `scoring: false`"};
  if (!style_.tokens) return {false, "prompts go as text; `prompt: tokens` is needed for scoring"};
  return TestScoring(style_, *tokenizer_, [this](const Json& body) { return AskOnce(body); });
}

// -1: not known, or not needed.
int ServerEngine::PromptTokens(const Request& request) const {
  const Json in_force = style_.generation.InForce(request.sampling);
  if (!in_force.contains("max_length") && !in_force.contains("max_new_tokens")) return -1;
  if (style_.tokens) return static_cast<int>(request.context_tokens.size());
  return tokenizer_ ? static_cast<int>(tokenizer_->Encode(request.context, true).size()) : -1;
}

void ServerEngine::Submit(uint64_t tag, Request request) {
  Job job;
  job.fit = FitPrompt(server_.max_length(), style_.tokens, tokenizer_.get(), &request);
  if (request.kind == RequestKind::kGenerateUntil) {
    job.body = ToLine(GenerateBody(style_, request, PromptTokens(request)));
  } else if (request.kind == RequestKind::kLoglikelihood && scoring_.right) {
    std::vector<int32_t> tokens = request.context_tokens;
    tokens.insert(tokens.end(), request.continuation_tokens.begin(),
                  request.continuation_tokens.end());
    job.body = ToLine(ScoreBody(style_, tokens));
  } else {
    throw Error(ErrorKind::kInput, fmt::format("this server cannot answer {}: {}",
                                               ToString(request.kind), scoring_.reason));
  }
  job.request = std::move(request);
  jobs_.emplace(tag, std::move(job));
}

void ServerEngine::StartDue() {
  const Clock::time_point now = Clock::now();
  for (auto& [tag, job] : jobs_) {
    if (http_.pending() >= static_cast<size_t>(options_.concurrency)) return;
    if (job.under_way || job.not_before > now) continue;
    http_.Start(tag, server_.Completion(job.body, options_.request_timeout));
    job.under_way = true;
    ++job.attempts;
  }
}

std::chrono::milliseconds ServerEngine::UntilNextStart(std::chrono::milliseconds budget) const {
  auto wait = budget;
  for (const auto& [tag, job] : jobs_) {
    if (job.under_way) continue;
    wait =
        std::min(wait, std::chrono::ceil<std::chrono::milliseconds>(job.not_before - Clock::now()));
  }
  return std::max(wait, std::chrono::milliseconds(1));
}

std::vector<Finished> ServerEngine::Step(std::chrono::milliseconds budget) {
  std::vector<Finished> finished;
  if (jobs_.empty()) return finished;
  try {
    if (!server_.alive()) {
      http_.CancelAll();
      for (auto& [tag, job] : jobs_) job.under_way = false;
      server_.Restart();
      WarmUp();
    }
    StartDue();
    const auto wait = UntilNextStart(budget);
    if (http_.pending() == 0) std::this_thread::sleep_for(wait);
    for (const auto& ended : http_.Poll(wait)) Take(ended.id, ended.response, &finished);
  } catch (...) {
    CancelAll();
    throw;
  }
  return finished;
}

void ServerEngine::Take(uint64_t tag, const http_client::Response& reply,
                        std::vector<Finished>* finished) {
  const auto found = jobs_.find(tag);
  if (found == jobs_.end()) return;
  Job& job = found->second;
  job.under_way = false;
  if (Refused(reply)) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: task '{}', document {}: the server refused the request with {}",
                            server_.completions_url(), job.request.task, job.request.doc_id,
                            WhyNot(reply)));
  }
  if (!reply.ok()) return Retry(&job, reply, WhyNot(reply));
  try {
    finished->push_back({tag, Answer(job, reply.body)});
    jobs_.erase(found);
  } catch (const Error& e) {
    Retry(&job, reply, e.what());
  }
}

// Unlike a call of http_client's own, one that ran out of time is made once more: the server may
// have been at other work.
void ServerEngine::Retry(Job* job, const http_client::Response& reply, const std::string& why) {
  if (!server_.alive()) return;  // the next Step restarts the server and sends this request again
  job->timeouts += reply.outcome == http_client::Outcome::kTimedOut ? 1 : 0;
  if (job->attempts > options_.retries || job->timeouts > 1) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{}: task '{}', document {}: no answer after {} attempts: {}",
                            server_.completions_url(), job->request.task, job->request.doc_id,
                            job->attempts, why));
  }
  const double draw = std::uniform_real_distribution<double>(0, 1)(random_);
  const auto pause = http_client::RetryPause({}, job->attempts, reply.retry_after_s, draw);
  job->not_before = Clock::now() + pause;
  log::Warn("document {}: {}; again in {:.2f} s", job->request.doc_id, why, Seconds(pause).count());
}

Generation ServerEngine::Answer(const Job& job, const std::string& body) const {
  Completion completion = ParseCompletion(body);
  Generation generation;
  if (job.request.kind == RequestKind::kGenerateUntil) {
    generation = GenerationOf(job.request, std::move(completion));
  } else {
    const size_t begin = job.request.context_tokens.size();
    const size_t end = begin + job.request.continuation_tokens.size();
    generation.loglikelihood = SumLogprobs(completion, begin, end, &generation.is_greedy);
    generation.finish = FinishReason::kScored;
    generation.tokens_in = static_cast<int>(end);
    generation.tokens_out = static_cast<int>(end - begin);
  }
  generation.doc_id = job.request.doc_id;
  generation.idx = job.request.idx;
  generation.repeat = job.request.repeat;
  generation.kind = job.request.kind;
  generation.truncated = job.fit.dropped;
  return generation;
}

}  // namespace

std::unique_ptr<Engine> MakeServerEngine(const EngineOptions& options) {
  return std::make_unique<ServerEngine>(options);
}

}  // namespace evald
