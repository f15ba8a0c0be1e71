#include "worker/server/server_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <thread>

#include "base/jsonl.h"
#include "base/log.h"
#include "evald/error.h"
#include "http_client/transfers.h"
#include "worker/server/completions.h"
#include "worker/server/plan.h"
#include "worker/server/serving.h"
#include "worker/server/waiting.h"

namespace evald {
namespace {

using namespace server;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// Requests held for each call if a call may answer several.
constexpr int kHeldPerCall = 4;
// The answers under way may have so many bytes in all.
constexpr size_t kAnswersBytesMax = size_t{1} << 30;

class ServerEngine : public Engine {
 public:
  explicit ServerEngine(const EngineOptions& options)
      : name_(options.name), device_(options.device), serving_(options) {}

  EngineInfo Info() const override;
  void RequirePrograms() const override { serving_.RequireProgram(); }
  void Load(const std::filesystem::path& directory) override { serving_.Load(directory); }
  void Submit(uint64_t tag, Request request) override;
  std::vector<Finished> Step(std::chrono::milliseconds budget) override;
  size_t pending() const override { return jobs_.size(); }
  void CancelAll() override {
    http_.CancelAll();
    calls_.clear();
    bytes_under_way_ = 0;
    waiting_.TakeAll();
    jobs_.clear();
    ready_.clear();
  }
  std::optional<ServedApi> Api() override;
  Json LoadReport() const override { return serving_.report(); }

 private:
  struct Job {
    Plan plan;
    std::vector<Score> scores;  ///< of its windows
    size_t left = 0;            ///< windows without a score
  };
  struct Call {
    std::vector<Item> items;
    size_t bytes = 0;  ///< the most that its answer may have
  };

  void RestartServer();
  void StartDue();
  void Start(std::vector<Item> items);
  std::chrono::milliseconds UntilNextStart(std::chrono::milliseconds budget) const;
  void Take(uint64_t id, const http_client::Response& reply, std::vector<Finished>* finished);
  void TakeText(const Item& item, const http_client::Response& reply,
                std::vector<Finished>* finished);
  void TakeScores(const Call& call, const http_client::Response& reply,
                  std::vector<Finished>* finished);
  void LeaveToNextWay(Item item, const std::string& why);
  void Retry(Item item, const http_client::Response& reply, const std::string& why);
  void Finish(uint64_t tag, Generation generation, std::vector<Finished>* finished);
  Generation Scored(const Job& job) const;
  std::string NameOf(const Item& item) const;

  std::string name_;  ///< the engine's in eval.yaml
  std::string device_;
  Serving serving_;
  http_client::Transfers http_;
  std::mt19937_64 random_{std::random_device{}()};  // for pauses only
  std::map<uint64_t, Job> jobs_;                    ///< by tag
  Waiting waiting_;
  std::map<uint64_t, Call> calls_;  ///< under way
  uint64_t next_call_ = 0;
  size_t bytes_under_way_ = 0;
  std::vector<uint64_t> ready_;  ///< jobs of which nothing is to be asked
};

EngineInfo ServerEngine::Info() const {
  const ServerFacts& facts = serving_.server().facts();
  EngineInfo info;
  info.name = name_;
  info.version = facts.version.empty() ? facts.model : facts.version;
  info.kinds = {RequestKind::kGenerateUntil};
  // Only after Load is it known whether the server can score.
  if (serving_.scorer().offered()) {
    info.kinds.push_back(RequestKind::kLoglikelihood);
    info.kinds.push_back(RequestKind::kLoglikelihoodRolling);
  }
  info.max_length = facts.max_length;
  info.deterministic = serving_.deterministic();
  info.parity = serving_.verdict();
  info.model = serving_.setup().style.reply_model;
  info.wants_tokens = serving_.options().tokens;
  info.concurrency = serving_.concurrency() * (serving_.scorer().together() > 1 ? kHeldPerCall : 1);
  info.device = name_ + ", " + (facts.version.empty() ? facts.model : facts.version);
  if (serving_.on_gpu()) info.device_id = device_;
  return info;
}

std::optional<ServedApi> ServerEngine::Api() {
  if (!serving_.server().alive()) RestartServer();
  ServedApi api = serving_.server().api();
  api.alive = [this] { return serving_.server().alive(); };
  return api;
}

void ServerEngine::Submit(uint64_t tag, Request request) {
  const bool scores = request.kind != RequestKind::kGenerateUntil;
  if (scores && !serving_.scorer().offered()) {
    throw Error(ErrorKind::kInput, fmt::format("this server cannot answer {}: {}",
                                               ToString(request.kind), serving_.scorer().reason()));
  }
  Job job{PlanFor(serving_.setup(), std::move(request)), {}, 0};
  job.left = job.plan.windows.size();
  job.scores.resize(job.left);
  Job& kept = jobs_.emplace(tag, std::move(job)).first->second;
  if (!scores) {
    Item item;
    item.tag = tag;
    return waiting_.Add(item);
  }
  if (kept.left == 0) ready_.push_back(tag);
  for (size_t i = 0; i < kept.plan.windows.size(); ++i) {
    const ScoreWindow& window = kept.plan.windows[i];
    Item item;
    item.tag = tag;
    item.index = i;
    item.window = &window;
    item.way = serving_.scorer().WayFor(window).value();
    waiting_.Add(item);
  }
}

void ServerEngine::StartDue() {
  const auto together = [this](const Item& item) {
    return item.window == nullptr ? 1 : serving_.scorer().way(item.way).together();
  };
  while (calls_.size() < static_cast<size_t>(serving_.concurrency()) &&
         bytes_under_way_ + kAnswerBytesMax <= kAnswersBytesMax) {
    std::vector<Item> items = waiting_.Take(Clock::now(), together);
    if (items.empty()) return;
    Start(std::move(items));
  }
}

void ServerEngine::Start(std::vector<Item> items) {
  Call call{std::move(items), 0};
  for (Item& item : call.items) ++item.attempts;
  const Item& first = call.items[0];
  std::string path = Serving::kCompletions, body;
  if (first.window == nullptr) {
    const Plan& plan = jobs_.at(first.tag).plan;
    call.bytes = plan.answer_bytes_max;
    body = plan.body;
  } else {
    const ScoringWay& way = serving_.scorer().way(first.way);
    std::vector<const ScoreWindow*> windows;
    for (const Item& item : call.items) windows.push_back(item.window);
    call.bytes = AnswerBytesMax(*first.window);
    path = way.path();
    body = ToLine(way.Body(windows));
  }
  const uint64_t id = next_call_++;
  http_.Start(id, serving_.server().Post(path, std::move(body), serving_.options().request_timeout,
                                         call.bytes));
  bytes_under_way_ += call.bytes;
  calls_.emplace(id, std::move(call));
}

std::chrono::milliseconds ServerEngine::UntilNextStart(std::chrono::milliseconds budget) const {
  auto wait = budget;
  if (const auto due = waiting_.NextDue())
    wait = std::min(wait, std::chrono::ceil<std::chrono::milliseconds>(*due - Clock::now()));
  return std::max(wait, std::chrono::milliseconds(1));
}

// Everything that is not answered is asked again, in the ways that the new server has shown.
void ServerEngine::RestartServer() {
  http_.CancelAll();
  std::vector<Item> items = waiting_.TakeAll();
  for (const auto& [id, call] : calls_)
    items.insert(items.end(), call.items.begin(), call.items.end());
  calls_.clear();
  bytes_under_way_ = 0;
  serving_.Restart();
  for (Item& item : items) {
    item.not_before = {};
    if (item.window != nullptr) {
      const auto way = serving_.scorer().WayFor(*item.window);
      if (!way)
        throw Error(
            ErrorKind::kInfrastructure,
            "the server that was started again does not score: " + serving_.scorer().reason());
      item.way = *way;
    }
    waiting_.Add(item);
  }
}

std::vector<Finished> ServerEngine::Step(std::chrono::milliseconds budget) {
  std::vector<Finished> finished;
  if (jobs_.empty()) return finished;
  try {
    for (const uint64_t tag : std::exchange(ready_, {}))
      Finish(tag, Scored(jobs_.at(tag)), &finished);
    if (!finished.empty()) return finished;
    if (!serving_.server().alive()) RestartServer();
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

std::string ServerEngine::NameOf(const Item& item) const {
  const Request& request = jobs_.at(item.tag).plan.request;
  const std::string path =
      item.window == nullptr ? Serving::kCompletions : serving_.scorer().way(item.way).path();
  return fmt::format("{}: task '{}', document {}", serving_.server().Name(path), request.task,
                     request.doc_id);
}

void ServerEngine::Take(uint64_t id, const http_client::Response& reply,
                        std::vector<Finished>* finished) {
  const auto node = calls_.extract(id);
  if (node.empty()) return;
  const Call& call = node.mapped();
  bytes_under_way_ -= call.bytes;
  const Item& first = call.items[0];
  const std::string why = reply.ok() ? "" : WhyNot(reply);
  if (Refused(reply) && first.window != nullptr &&
      serving_.scorer().way(first.way).LeavesToNext(reply.status, why)) {
    for (const Item& item : call.items) LeaveToNextWay(item, why);
  } else if (Refused(reply)) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: the server refused the request with {}", NameOf(first), why));
  } else if (!reply.ok()) {
    for (const Item& item : call.items) Retry(item, reply, why);
  } else if (first.window == nullptr) {
    TakeText(first, reply, finished);
  } else {
    TakeScores(call, reply, finished);
  }
}

void ServerEngine::TakeText(const Item& item, const http_client::Response& reply,
                            std::vector<Finished>* finished) {
  const Plan& plan = jobs_.at(item.tag).plan;
  Generation generation;
  try {
    const PlanSetup& setup = serving_.setup();
    generation = GenerationOf(plan.request, ParseAnswer(reply.body, setup.style), setup.tokenizer,
                              plan.end_tokens, plan.thinking ? &*plan.thinking : nullptr);
  } catch (const Error& e) {
    return Retry(item, reply, e.what());
  }
  Finish(item.tag, std::move(generation), finished);
}

void ServerEngine::TakeScores(const Call& call, const http_client::Response& reply,
                              std::vector<Finished>* finished) {
  std::vector<const ScoreWindow*> windows;
  for (const Item& item : call.items) windows.push_back(item.window);
  std::vector<std::optional<Score>> scores;
  try {
    scores = serving_.scorer().way(call.items[0].way).Read(windows, reply.body);
  } catch (const Error& e) {
    for (const Item& item : call.items) Retry(item, reply, e.what());
    return;
  }
  for (size_t i = 0; i < call.items.size(); ++i) {
    const Item& item = call.items[i];
    if (!scores[i]) {
      LeaveToNextWay(item, "the reply has no score");
      continue;
    }
    Job& job = jobs_.at(item.tag);
    job.scores[item.index] = *scores[i];
    if (--job.left == 0) Finish(item.tag, Scored(job), finished);
  }
}

void ServerEngine::LeaveToNextWay(Item item, const std::string& why) {
  const auto next = serving_.scorer().WayFor(*item.window, item.way + 1);
  if (!next) return Retry(item, {}, why);
  item.way = *next;
  item.attempts = 0;
  item.not_before = {};
  waiting_.Add(item);
}

// Unlike a call of http_client's own, one that ran out of time is made once more: the server may
// have been at other work.
void ServerEngine::Retry(Item item, const http_client::Response& reply, const std::string& why) {
  item.timeouts += reply.outcome == http_client::Outcome::kTimedOut ? 1 : 0;
  if (!serving_.server().alive()) {
    item.not_before = {};
    return waiting_.Add(item);  // the next Step restarts the server and sends this request again
  }
  if (item.attempts > serving_.options().retries || item.timeouts > 1) {
    throw Error(ErrorKind::kInfrastructure, fmt::format("{}: no answer after {} attempts: {}",
                                                        NameOf(item), item.attempts, why));
  }
  const double draw = std::uniform_real_distribution<double>(0, 1)(random_);
  const auto pause = http_client::RetryPause({}, item.attempts, reply.retry_after_s, draw);
  item.not_before = Clock::now() + pause;
  log::Warn("{}: {}; again in {:.2f} s", NameOf(item), why, Seconds(pause).count());
  waiting_.Add(item);
}

Generation ServerEngine::Scored(const Job& job) const {
  Generation generation;
  bool greedy = true;
  for (const Score& score : job.scores) {
    generation.loglikelihood += score.logprob;
    greedy = greedy && score.is_greedy;
  }
  generation.is_greedy = job.plan.request.kind == RequestKind::kLoglikelihood && greedy;
  generation.finish = FinishReason::kScored;
  generation.tokens_in = job.plan.tokens_in;
  generation.tokens_out = job.plan.tokens_out;
  return generation;
}

void ServerEngine::Finish(uint64_t tag, Generation generation, std::vector<Finished>* finished) {
  const auto job = jobs_.extract(tag);
  const Plan& plan = job.mapped().plan;
  generation.doc_id = plan.request.doc_id;
  generation.idx = plan.request.idx;
  generation.repeat = plan.request.repeat;
  generation.kind = plan.request.kind;
  generation.truncated = plan.truncated;
  finished->push_back({tag, std::move(generation)});
}

}  // namespace

std::unique_ptr<Engine> MakeServerEngine(const EngineOptions& options) {
  return std::make_unique<ServerEngine>(options);
}

}  // namespace evald
