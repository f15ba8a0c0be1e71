#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "evald/error.h"
#include "evald/json.h"
#include "evald/score.h"
#include "http_client/transfers.h"
#include "metrics/judge/answer_cache.h"
#include "metrics/judge/secret.h"
#include "metrics/judge/settings.h"
#include "metrics/judge/spec.h"

namespace evald {

/// A document that could not be judged: the judge did not answer, or its answers have no verdict.
/// The document stays without a score, and the run is incomplete.
class NotJudged : public Error {
 public:
  explicit NotJudged(const std::string& message) : Error(ErrorKind::kInfrastructure, message) {}
};

/// One vote in one order.
struct JudgeQuestion {
  const JudgeSpec* spec = nullptr;  ///< outlives the panel
  Json messages;                    ///< rendered: [{"role", "content"}]
  bool swapped = false;             ///< of a pair: the response is shown as B
  int vote = 0;
};

/// How a question was settled.
struct JudgeVerdict {
  std::optional<double> score;  ///< nothing: the document cannot be judged
  std::string why;              ///< then why not; or why there is only the score `unparsed`
  bool unparsed = false;        ///< the score is JudgeSpec::unparsed
  std::string text;             ///< the answer that was read
  int attempts = 0;             ///< answers that were read, without and with a verdict
};

/// Asks a judge's server for the documents of one metric job, with many calls at once. An answer is
/// kept before it is read. Equal calls are made once, whoever asks.
///
/// A call that found no server, or broke, ran out of time or got a status that may pass (408, 425,
/// 429, 5xx), is made again after a pause (http_client/retry.h). An answer without a verdict is
/// asked for again with the next seed; so is an answer that is no chat completion. If the server
/// refuses the key or the model, or does not answer many calls one after another, no more is asked:
/// see stopped(). One thread at a time.
class JudgePanel {
 public:
  /// Where the calls' answers are kept, and what pays for them.
  struct Place {
    std::filesystem::path cache;
    std::string run;
    std::string task;
  };
  JudgePanel(const JudgeSettings& settings, Place place);
  ~JudgePanel();
  JudgePanel(const JudgePanel&) = delete;
  JudgePanel& operator=(const JudgePanel&) = delete;

  /// The questions from now on are those of this document.
  void Begin(int64_t document);
  /// The question's verdict. Null if it is not known yet: the question is then asked, and the
  /// document waits for it.
  const JudgeVerdict* Verdict(const JudgeQuestion& question);
  /// The questions that Verdict gave null for since Begin.
  std::vector<std::string> TakeMissing() { return std::move(missing_); }
  /// What the answers cost that were used since Begin.
  JudgeUsage Usage() const;

  bool settled(const std::string& question) const;
  /// Calls that are not over.
  size_t calls() const { return calls_.size(); }
  int concurrency() const { return settings_.concurrency; }
  /// Makes calls, and waits at most `budget` for the first of them to end.
  void Poll(std::chrono::milliseconds budget);
  /// From now on no call is made again, nor is an answer without a verdict asked for again.
  void Hurry() { hurried_ = true; }
  /// Why no more is asked; "" while the judge answers.
  const std::string& stopped() const { return stopped_; }

 private:
  struct Question;
  struct Call;
  struct Used {
    std::string key;
    KeptAnswer answer;
  };

  std::string BodyOf(const JudgeQuestion& question, int attempt) const;
  std::string IdOf(const JudgeQuestion& question) const;
  void Advance(Question* question);
  void Read(Question* question, const std::string& key, const KeptAnswer& answer);
  void Settle(Question* question, JudgeVerdict verdict);
  void GiveUp(Question* question);
  void Add(const std::string& key, std::string body, Question* question);
  void StartCalls();
  void Start(Call* call);
  void Ended(Call* call, http_client::Response response);
  void Answered(Call* call, const std::string& body);
  void Failed(Call* call, const std::string& why);
  bool MayRepeat(const Call& call, const http_client::Response& response) const;
  void Pause(Call* call, double retry_after_s);
  void Stop(const std::string& why);
  std::vector<Question*> End(Call* call);
  std::string WhatHappened(const http_client::Response& response) const;

  JudgeSettings settings_;
  Place place_;
  AnswerCache cache_;
  std::string key_;                                             // the server's
  Secret secret_;                                               // the same, to hide it
  std::map<std::string, std::unique_ptr<Question>> questions_;  // by id
  std::map<std::string, std::unique_ptr<Call>> calls_;          // by key
  std::map<uint64_t, Call*> under_way_;                         // on the wire
  std::deque<Call*> queue_;
  std::vector<Call*> pausing_;
  uint64_t next_call_ = 0;
  http_client::Transfers transfers_;
  std::mt19937_64 random_{std::random_device{}()};  // for pauses only

  int64_t document_ = 0;
  std::vector<std::string> missing_;
  std::map<std::string, Question*> used_;  // by the document since Begin, by id

  int failures_in_row_ = 0;
  int64_t failures_ = 0, answers_ = 0;  // of calls
  bool hurried_ = false;
  std::string stopped_;
};

}  // namespace evald
