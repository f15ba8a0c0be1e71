#include "worker/openai/openai_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <thread>

#include "base/clock.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "evald/error.h"
#include "tokenizer/tokenizer.h"
#include "worker/openai/completions.h"
#include "worker/openai/fit.h"
#include "worker/openai/http_client.h"
#include "worker/openai/options.h"
#include "worker/openai/self_test.h"
#include "worker/openai/server.h"

namespace evald {
namespace {

using namespace openai;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr double kBackOffSeconds = 0.25;
constexpr double kBackOffSecondsMax = 10;
constexpr double kRetryAfterSecondsMax = 60;

// Refused for what it says: asking again does not help.
bool Refused(const HttpReply& reply) {
  return reply.status >= 400 && reply.status < 500 && reply.status != 408 && reply.status != 429;
}

class OpenaiEngine : public Engine {
 public:
  explicit OpenaiEngine(const EngineOptions& options)
      : options_(ReadOptions(options.settings)),
        roots_(options.roots),
        server_(options_, options.roots),
        http_(server_.http_options()) {
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
  Generation Answer(const Job& job, const HttpReply& reply) const;
  void Retry(Job* job, const HttpReply& reply, const std::string& why);
  bool Take(HttpReply&& reply, std::vector<Finished>* finished);

  Options options_;
  ReadRoots roots_;
  Server server_;
  HttpClient http_;
  CompletionsStyle style_;
  std::unique_ptr<Tokenizer> tokenizer_;  ///< null when the checkpoint's is not understood
  ScoringVerdict scoring_;
  std::map<uint64_t, Job> jobs_;
  Json report_ = Json::object();
};

EngineInfo OpenaiEngine::Info() const {
  EngineInfo info;
  info.name = "openai";
  info.version = server_.model();
  info.kinds = {RequestKind::kGenerateUntil};
  // Before Load it is not known whether the server can score.
  if (scoring_.right) info.kinds.push_back(RequestKind::kLoglikelihood);
  info.max_length = server_.max_length();
  info.deterministic = options_.deterministic;
  info.wants_tokens = options_.tokens;
  info.concurrency = options_.concurrency;
  info.device = "openai, " + server_.model();
  return info;
}

void OpenaiEngine::Load(const std::filesystem::path& directory) {
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

// Some servers say that they are healthy and load the model with the first request.
void OpenaiEngine::WarmUp() {
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
  const HttpReply reply = server_.Complete(GenerateBody(plain, request), options_.ready_timeout);
  if (Refused(reply)) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: the server refused a first request with status {}: {}",
                            server_.completions_url(), reply.status, ErrorText(reply.body)),
                style_.tokens ? "where the server takes no token ids: `prompt: text`"
                              : "the server must offer /v1/completions");
  }
  if (reply.status != 200) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{}: a first request failed: {}{}", server_.completions_url(),
                            reply.status == 0
                                ? reply.error
                                : fmt::format("status {}: {}", reply.status, ErrorText(reply.body)),
                            server_.LogTail()),
                "the server must offer /v1/completions");
  }
  ParseCompletion(reply.body);
}

Completion OpenaiEngine::AskOnce(const Json& body) {
  const HttpReply reply = server_.Complete(body, options_.request_timeout);
  if (reply.status != 200) {
    throw Error(ErrorKind::kInfrastructure,
                reply.status == 0
                    ? reply.error
                    : fmt::format("status {}: {}", reply.status, ErrorText(reply.body)));
  }
  return ParseCompletion(reply.body);
}

ScoringVerdict OpenaiEngine::JudgeScoring() {
  if (!options_.scoring) return {false, "switched off by `scoring: false`"};
  if (!style_.tokens) return {false, "prompts go as text; `prompt: tokens` is needed for scoring"};
  return TestScoring(style_, *tokenizer_, [this](const Json& body) { return AskOnce(body); });
}

// -1: not known, or of no use.
int OpenaiEngine::PromptTokens(const Request& request) const {
  const Json in_force = style_.generation.InForce(request.sampling);
  if (!in_force.contains("max_length") && !in_force.contains("max_new_tokens")) return -1;
  if (style_.tokens) return static_cast<int>(request.context_tokens.size());
  return tokenizer_ ? static_cast<int>(tokenizer_->Encode(request.context, true).size()) : -1;
}

void OpenaiEngine::Submit(uint64_t tag, Request request) {
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

void OpenaiEngine::StartDue() {
  const Clock::time_point now = Clock::now();
  for (auto& [tag, job] : jobs_) {
    if (http_.pending() >= static_cast<size_t>(options_.concurrency)) return;
    if (job.under_way || job.not_before > now) continue;
    http_.Start({tag, server_.completions_url(), job.body, options_.request_timeout});
    job.under_way = true;
    ++job.attempts;
  }
}

std::chrono::milliseconds OpenaiEngine::UntilNextStart(std::chrono::milliseconds budget) const {
  auto wait = budget;
  for (const auto& [tag, job] : jobs_) {
    if (job.under_way) continue;
    wait =
        std::min(wait, std::chrono::ceil<std::chrono::milliseconds>(job.not_before - Clock::now()));
  }
  return std::max(wait, std::chrono::milliseconds(1));
}

std::vector<Finished> OpenaiEngine::Step(std::chrono::milliseconds budget) {
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
    for (HttpReply& reply : http_.Poll(wait)) Take(std::move(reply), &finished);
  } catch (...) {
    CancelAll();
    throw;
  }
  return finished;
}

bool OpenaiEngine::Take(HttpReply&& reply, std::vector<Finished>* finished) {
  const auto found = jobs_.find(reply.id);
  if (found == jobs_.end()) return false;
  Job& job = found->second;
  job.under_way = false;
  if (reply.status == 200) {
    try {
      finished->push_back({reply.id, Answer(job, reply)});
      jobs_.erase(found);
      return true;
    } catch (const Error& e) {
      Retry(&job, reply, e.what());
      return false;
    }
  }
  if (reply.status == 0) {
    Retry(&job, reply, reply.error);
  } else if (reply.status == 429 || reply.status == 408 || reply.status >= 500) {
    Retry(&job, reply, fmt::format("status {}: {}", reply.status, ErrorText(reply.body)));
  } else {
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: task '{}', document {}: the server refused the request with status "
                    "{}: {}",
                    server_.completions_url(), job.request.task, job.request.doc_id, reply.status,
                    ErrorText(reply.body)));
  }
  return false;
}

void OpenaiEngine::Retry(Job* job, const HttpReply& reply, const std::string& why) {
  if (!server_.alive()) return;  // the next Step starts it again, and this request with it
  job->timeouts += reply.timed_out ? 1 : 0;
  if (job->attempts > options_.retries || job->timeouts > 1) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{}: task '{}', document {}: no answer after {} attempts: {}",
                            server_.completions_url(), job->request.task, job->request.doc_id,
                            job->attempts, why));
  }
  double seconds =
      std::min(kBackOffSeconds * static_cast<double>(1 << std::min(job->attempts - 1, 10)),
               kBackOffSecondsMax);
  seconds = std::max(seconds, std::min(reply.retry_after_seconds, kRetryAfterSecondsMax));
  job->not_before = Clock::now() + std::chrono::duration_cast<Clock::duration>(Seconds(seconds));
  log::Warn("document {}: {}; again in {:.2f} s", job->request.doc_id, why, seconds);
}

Generation OpenaiEngine::Answer(const Job& job, const HttpReply& reply) const {
  Completion completion = ParseCompletion(reply.body);
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

std::unique_ptr<Engine> MakeOpenaiEngine(const EngineOptions& options) {
  return std::make_unique<OpenaiEngine>(options);
}

}  // namespace evald
