#include "metrics/judge/panel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/text.h"
#include "http_client/client.h"
#include "http_client/retry.h"
#include "http_client/url.h"
#include "metrics/judge/reading.h"

namespace evald {
namespace {

using http_client::Outcome;
using http_client::Response;

constexpr int64_t kDefaultMaxTokens = 1024;
constexpr size_t kBodyBytesMax = size_t{4} << 20;  // of an answer
constexpr int kAttemptsMax = 1000;                 // answers that are kept count, too
// After so many calls in a row that the server did not answer, it is taken to be down.
constexpr int kFailuresInRowMax = 8;
// In a job in which no call was answered, so many will do.
constexpr int64_t kFailuresOfSilentMax = 3;

http_client::RetryPolicy PausesOf(const JudgeSettings& settings) {
  http_client::RetryPolicy policy;
  policy.attempts_max = 1 + settings.retries;
  policy.first_pause = std::chrono::milliseconds(500);
  return policy;
}

}  // namespace

struct JudgePanel::Question {
  JudgeQuestion asked;
  std::string id;
  int64_t document = 0;  // that asked first
  int attempt = 0;
  int asks = 0;  // calls that were made for it and answered, or are under way
  std::vector<Used> used;
  std::string why;            // the last answer has no verdict
  std::string text;           // that answer
  bool whole_answer = false;  // it was a chat completion
  std::optional<JudgeVerdict> verdict;
};

struct JudgePanel::Call {
  std::string key;
  std::string body;
  AskedFor asked_for;
  uint64_t id = 0;
  int attempts = 0;
  int64_t due_us = 0;
  std::vector<Question*> waiting;
};

JudgePanel::JudgePanel(const JudgeSettings& settings, Place place)
    : settings_(settings), place_(std::move(place)), cache_(place_.cache) {
  if (settings_.api_key_env.empty()) return;
  const char* const key = std::getenv(settings_.api_key_env.c_str());
  if (key != nullptr && *key != '\0') {
    key_ = key;
    secret_ = Secret(key_);
  } else {
    Stop(fmt::format("the variable {}, which holds the judge's key, is not set on this host",
                     settings_.api_key_env));
  }
}

JudgePanel::~JudgePanel() = default;

void JudgePanel::Begin(int64_t document) {
  document_ = document;
  missing_.clear();
  used_.clear();
}

// The members and their order decide the key of a kept answer.
std::string JudgePanel::BodyOf(const JudgeQuestion& question, int attempt) const {
  const JudgeSpec& spec = *question.spec;
  const auto max_tokens = settings_.max_tokens ? settings_.max_tokens : spec.max_tokens;
  const auto temperature = settings_.temperature ? settings_.temperature : spec.temperature;
  Json body = {{"model", settings_.model},
               {"messages", question.messages},
               {"max_tokens", max_tokens.value_or(kDefaultMaxTokens)},
               {"temperature", temperature.value_or(0.0)},
               {"seed", spec.seed + question.vote + int64_t{attempt} * spec.votes}};
  if (!spec.response_format.is_null()) body["response_format"] = spec.response_format;
  return ToLine(body);
}

std::string JudgePanel::IdOf(const JudgeQuestion& question) const {
  return fmt::format("{}\n{}\n{}", question.spec->name, question.swapped ? 1 : 0,
                     AnswerCache::KeyOf(settings_.base_url, BodyOf(question, 0)));
}

const JudgeVerdict* JudgePanel::Verdict(const JudgeQuestion& asked) {
  std::string id = IdOf(asked);
  const auto [found, fresh] = questions_.try_emplace(id);
  if (fresh) {
    found->second = std::make_unique<Question>();
    found->second->asked = asked;
    found->second->id = id;
    found->second->document = document_;
    Advance(found->second.get());
  }
  Question* const question = found->second.get();
  used_[id] = question;
  if (question->verdict) return &*question->verdict;
  missing_.push_back(std::move(id));
  return nullptr;
}

bool JudgePanel::settled(const std::string& question) const {
  const auto found = questions_.find(question);
  return found != questions_.end() && found->second->verdict.has_value();
}

// Each answer counts once for a document, and as a request only for the one that asked for it.
JudgeUsage JudgePanel::Usage() const {
  JudgeUsage usage;
  std::set<std::string> counted;
  const AskedFor own{place_.run, place_.task, document_};
  for (const auto& [id, question] : used_) {
    if (question->verdict && question->verdict->unparsed) ++usage.unparsed;
    for (const Used& used : question->used) {
      if (!counted.insert(used.key).second) continue;
      const bool asked = used.answer.asked_for == own;
      const Completion& answer = used.answer.completion;
      (asked ? usage.requests : usage.cached) += 1;
      (asked ? usage.tokens_in : usage.cached_tokens_in) += answer.tokens_in;
      (asked ? usage.tokens_out : usage.cached_tokens_out) += answer.tokens_out;
    }
  }
  return usage;
}

// ---- questions

// Reads the answers that are kept, in the order of their seeds, and asks for the first that is not.
void JudgePanel::Advance(Question* question) {
  for (; !question->verdict; ++question->attempt) {
    if (question->attempt >= kAttemptsMax) return GiveUp(question);
    std::string body = BodyOf(question->asked, question->attempt);
    const std::string key = AnswerCache::KeyOf(settings_.base_url, body);
    const auto under_way = calls_.find(key);
    if (under_way != calls_.end()) {
      ++question->asks;
      under_way->second->waiting.push_back(question);
      return;
    }
    if (const auto kept = cache_.Find(key)) {
      Read(question, key, *kept);
      continue;
    }
    if (question->asks > question->asked.spec->reasks || (hurried_ && question->asks > 0))
      return GiveUp(question);
    if (!stopped_.empty()) {
      JudgeVerdict none;
      none.why = stopped_;
      return Settle(question, none);
    }
    ++question->asks;
    return Add(key, std::move(body), question);
  }
}

void JudgePanel::Read(Question* question, const std::string& key, const KeptAnswer& answer) {
  question->used.push_back({key, answer});
  JudgeReading reading =
      ReadVerdict(*question->asked.spec, answer.completion, question->asked.swapped);
  question->text = answer.completion.text;
  question->whole_answer = true;
  question->why = reading.why;
  if (!reading.score) return;
  JudgeVerdict verdict;
  verdict.score = reading.score;
  Settle(question, std::move(verdict));
}

void JudgePanel::Settle(Question* question, JudgeVerdict verdict) {
  verdict.text = question->text;
  verdict.attempts = static_cast<int>(question->used.size());
  question->verdict = std::move(verdict);
}

// No answer has a verdict. Only answers of the judge itself count as `unparsed`.
void JudgePanel::GiveUp(Question* question) {
  JudgeVerdict verdict;
  const auto& unparsed = question->asked.spec->unparsed;
  verdict.why = fmt::format("the judge's answers have no verdict ({} read): {}",
                            question->used.size(), question->why);
  if (unparsed && question->whole_answer) {
    verdict.score = unparsed;
    verdict.unparsed = true;
  }
  Settle(question, std::move(verdict));
}

// ---- calls

void JudgePanel::Add(const std::string& key, std::string body, Question* question) {
  auto call = std::make_unique<Call>();
  call->key = key;
  call->body = std::move(body);
  call->asked_for = {place_.run, place_.task, question->document};
  call->waiting.push_back(question);
  queue_.push_back(call.get());
  calls_[key] = std::move(call);
}

// A call that waits to be made again keeps its place, so that a busy server gets fewer calls.
void JudgePanel::StartCalls() {
  const int64_t now = MonotonicMicros();
  std::vector<Call*> due;
  std::erase_if(pausing_, [&](Call* call) {
    if (call->due_us > now) return false;
    due.push_back(call);
    return true;
  });
  for (Call* const call : due) Start(call);
  while (!queue_.empty() &&
         under_way_.size() + pausing_.size() < static_cast<size_t>(settings_.concurrency)) {
    Call* const call = queue_.front();
    queue_.pop_front();
    Start(call);
  }
}

void JudgePanel::Start(Call* call) {
  http_client::Request request;
  request.method = "POST";
  request.url = settings_.base_url + "/chat/completions";
  request.headers = {{"Content-Type", "application/json"}};
  request.bearer_token = key_;
  request.body = call->body;
  request.limits.total =
      std::chrono::milliseconds(static_cast<int64_t>(settings_.timeout_s * 1000));
  request.limits.body_bytes_max = kBodyBytesMax;
  if (!stopped_.empty()) return Failed(call, stopped_);
  ++call->attempts;
  call->id = next_call_++;
  try {
    transfers_.Start(call->id, std::move(request));
  } catch (const Error& e) {
    // Of a key with a line break, for example: every call would fail
    Stop(secret_.Hide(e.what()));
    return Failed(call, stopped_);
  }
  under_way_[call->id] = call;
}

void JudgePanel::Poll(std::chrono::milliseconds budget) {
  StartCalls();
  const int64_t now = MonotonicMicros();
  for (const Call* const call : pausing_) {
    const std::chrono::milliseconds left(std::max<int64_t>(1, (call->due_us - now + 999) / 1000));
    budget = std::min(budget, left);
  }
  if (under_way_.empty()) {
    if (!pausing_.empty()) http_client::Pause(budget, nullptr);
    return;
  }
  for (http_client::Transfers::Ended& ended : transfers_.Poll(budget)) {
    const auto found = under_way_.find(ended.id);
    if (found == under_way_.end()) continue;
    Call* const call = found->second;
    under_way_.erase(found);
    Ended(call, std::move(ended.response));
  }
  StartCalls();
}

void JudgePanel::Ended(Call* call, Response response) {
  if (response.ok()) {
    failures_in_row_ = 0;
    ++answers_;
    return Answered(call, response.body);
  }
  const std::string what = WhatHappened(response);
  if (response.outcome == Outcome::kTooLong) {  // another seed may give a shorter answer
    Question* const first = call->waiting.front();
    log::Warn("judge of task '{}', document {}: {}", place_.task, first->document, what);
    for (Question* const question : End(call)) {
      question->why = what;
      question->whole_answer = false;
      ++question->attempt;
      Advance(question);
    }
    return;
  }
  if (MayRepeat(*call, response)) return Pause(call, response.retry_after_s);
  const bool for_all = response.outcome == Outcome::kUntrusted ||
                       (response.answered() && (response.status < 400 || response.status == 401 ||
                                                response.status == 403 || response.status == 404));
  if (for_all) Stop(what);
  Failed(call, what);
}

bool JudgePanel::MayRepeat(const Call& call, const Response& response) const {
  if (hurried_ || !stopped_.empty() || call.attempts > settings_.retries) return false;
  return http_client::IsWorthAnother(response) || response.outcome == Outcome::kTimedOut;
}

void JudgePanel::Pause(Call* call, double retry_after_s) {
  const double draw = std::uniform_real_distribution<double>()(random_);
  call->due_us =
      MonotonicMicros() +
      http_client::RetryPause(PausesOf(settings_), call->attempts, retry_after_s, draw).count();
  pausing_.push_back(call);
}

// The answer is on disk before anything is made of it.
void JudgePanel::Answered(Call* call, const std::string& body) {
  KeptAnswer answer;
  answer.asked_for = call->asked_for;
  std::string wrong;
  try {
    answer.completion = ReadCompletion(body);
    answer.completion.text = ReplaceInvalidUtf8(answer.completion.text);
    // Hiding the key there would change the answer.
    if (secret_.IsIn(answer.completion.text))
      throw Error(ErrorKind::kInfrastructure, "the judge's answer quotes the judge's key");
    cache_.Keep(call->key, answer);
    FailPoint("judge.answer_kept");
  } catch (const Error& e) {
    wrong = secret_.Hide(e.message());
  }
  const std::string key = call->key;
  for (Question* const question : End(call)) {
    if (wrong.empty()) {
      Read(question, key, answer);
    } else {
      question->why = wrong;
      question->whole_answer = false;
    }
    ++question->attempt;
    Advance(question);
  }
}

// The call brought no answer.
void JudgePanel::Failed(Call* call, const std::string& why) {
  ++failures_;
  ++failures_in_row_;
  const bool silent = answers_ == 0 && failures_ >= kFailuresOfSilentMax;
  for (Question* const question : End(call)) {
    JudgeVerdict none;
    none.why = why;
    Settle(question, std::move(none));
  }
  if (stopped_.empty() && (failures_in_row_ >= kFailuresInRowMax || silent)) Stop(why);
}

// Ends what has not been asked. Calls on the wire may still be answered.
void JudgePanel::Stop(const std::string& why) {
  if (!stopped_.empty()) return;
  stopped_ = why;
  std::vector<Call*> waiting(queue_.begin(), queue_.end());
  waiting.insert(waiting.end(), pausing_.begin(), pausing_.end());
  queue_.clear();
  pausing_.clear();
  for (Call* const call : waiting) {
    for (Question* const question : End(call)) {
      JudgeVerdict none;
      none.why = why;
      Settle(question, std::move(none));
    }
  }
}

std::vector<JudgePanel::Question*> JudgePanel::End(Call* call) {
  std::vector<Question*> waiting = std::move(call->waiting);
  calls_.erase(call->key);
  return waiting;
}

std::string JudgePanel::WhatHappened(const Response& response) const {
  const std::string server = http_client::Shown(settings_.base_url);
  if (response.outcome == Outcome::kTooLong)
    return secret_.Hide(fmt::format("the judge at {}: {}", server, response.error));
  if (!response.answered()) {
    return secret_.Hide(fmt::format("the judge at {} did not answer: {}", server, response.error));
  }
  std::string said = secret_.Hide(RefusalIn(response.body));
  if (!response.location.empty())
    said = "a redirect to " + http_client::Shown(response.location) + ", which is not followed";
  return fmt::format("the judge at {} answered with status {}{}{}", server, response.status,
                     said.empty() ? "" : ": ", said);
}

}  // namespace evald
