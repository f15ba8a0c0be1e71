#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evald/json.h"
#include "worker/engine/score_window.h"
#include "worker/server/completions.h"

namespace evald::server {

/// The score of one window: the sum of its targets' log-probabilities, and whether each target was
/// the likeliest token (of equally likely ones, the first).
struct Score {
  double logprob = 0;
  bool is_greedy = true;
};

/// One way to have windows of tokens scored by a server. Pure.
class ScoringWay {
 public:
  virtual ~ScoringWay() = default;

  virtual const char* name() const = 0;
  virtual const char* path() const = 0;
  virtual bool Takes(const ScoreWindow& window) const = 0;
  /// Whether it scores every window, so that no other way is needed after it.
  virtual bool complete() const { return false; }
  /// Whether it is the echo of a prompt, which has a self-test of its own (TestScoring).
  virtual bool echoes() const { return false; }
  /// The most windows with equal tokens in one call.
  virtual size_t together() const { return 1; }
  /// The body of a call for windows with equal tokens.
  virtual Json Body(const std::vector<const ScoreWindow*>& windows) const = 0;
  /// The scores, in the order of the windows. Nothing for a window that this reply does not tell
  /// and the next way has to score. Throws Error(kInfrastructure) for a reply of another form.
  virtual std::vector<std::optional<Score>> Read(const std::vector<const ScoreWindow*>& windows,
                                                 std::string_view body) const = 0;
  /// Whether the next way may score what the server refuses with this status and message.
  virtual bool LeavesToNext(int /*status*/, const std::string& /*message*/) const { return false; }
};

/// Log-probabilities of an echoed prompt (/v1/completions), which all servers of this API have that
/// can score. The server computes every prompt whole.
std::unique_ptr<ScoringWay> EchoWay(const CompletionsStyle& style);

/// The whole prompt of a window: its tokens and the last target.
std::vector<int32_t> PromptOf(const ScoreWindow& window);

}  // namespace evald::server
