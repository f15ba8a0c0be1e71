#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "evald/json.h"
#include "worker/parity/judge.h"
#include "worker/parity/reference.h"

namespace evald::parity {

/// The outcome of a check.
struct Report {
  enum class Outcome { kAgrees, kDiffers, kSkipped };
  Outcome outcome = Outcome::kSkipped;
  std::string reason;  ///< what differs, or why nothing was compared; "" if all agrees
  std::string causes;  ///< likely ones, if something differs
  Distance distance;
  double seconds = 0;  ///< time for computing the reference, which runs while the engine starts
  std::vector<std::string> left_out;  ///< parts for which there was no time
  int texts = 0;                      ///< continuations that were compared

  /// {"outcome": "agrees", "scores": 63, "mean": 0.0011, "largest": 0.006, "rounding": 0.0012,
  ///  "seconds": 0.4}; "reason" and "left_out" if there is something to say. Distances in nats.
  Json ToJson() const;
  /// One line for a person: "agrees", "skipped: ...", "differs: ...".
  std::string Summary() const;
};

/// Compares an engine's scores with those of evald's own engine on the processor, for a few short
/// texts and some long ones, from the same staged weights. The reference is computed by a thread of
/// its own while the engine starts. One thread calls this class.
class ParityCheck {
 public:
  /// The engine's scores of windows of one part. No value for a window that it cannot score. May
  /// throw Error(kInfrastructure).
  using AskScores =
      std::function<std::vector<std::optional<double>>(const std::vector<ScoreWindow>& windows)>;

  /// The engine's greedy continuation of a prompt, of so many tokens at most. May throw
  /// Error(kInfrastructure).
  using AskText = std::function<std::string(const std::string& prompt, int tokens)>;

  /// `budget`: the time for computing the reference; 0 switches the check off.
  ParityCheck(std::chrono::milliseconds budget, int threads) : budget_(budget), threads_(threads) {}
  ~ParityCheck() { Stop(); }
  ParityCheck(const ParityCheck&) = delete;
  ParityCheck& operator=(const ParityCheck&) = delete;

  /// Begins to compute the reference of a checkpoint for an engine that computes in `type`.
  /// `quick`: only the short texts, and a tenth of the budget, for an engine that has passed with
  /// other weights of the same shape.
  void Begin(const std::filesystem::path& directory, NumberType type, bool quick);
  /// Waits for the reference, asks the engine, and compares. May be called again for the same
  /// checkpoint, as after a restart of the engine. Throws what `ask` throws.
  Report Check(const AskScores& ask);
  /// The same by greedy texts, for an engine that does not score.
  Report CheckTexts(const AskText& ask);

 private:
  void Stop();
  bool HasReference();

  std::chrono::milliseconds budget_;
  int threads_;
  ReferenceTask task_;
  std::thread thread_;
  std::atomic<bool> stop_{false};
  // These members belong to `thread_` until it is joined.
  Reference reference_;
  std::string why_none_;  ///< why there is no reference
};

}  // namespace evald::parity
