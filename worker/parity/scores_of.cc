#include "worker/parity/scores_of.h"

#include "evald/error.h"

namespace evald::parity {
namespace {

constexpr std::chrono::milliseconds kStep{50};

Request RequestOf(const ScoreWindow& window) {
  Request request;
  request.task = "parity check";
  request.kind = RequestKind::kLoglikelihood;
  const auto first = window.tokens.begin();
  request.context_tokens.assign(first, first + window.score_from + 1);
  request.continuation_tokens = window.targets;
  return request;
}

}  // namespace

std::vector<double> ScoresOf(Engine* engine, const std::vector<ScoreWindow>& windows,
                             const std::atomic<bool>* stop) {
  for (size_t i = 0; i < windows.size(); ++i) engine->Submit(i, RequestOf(windows[i]));
  std::vector<double> scores(windows.size());
  while (engine->pending() > 0) {
    if (stop != nullptr && *stop) return {};
    for (const Finished& finished : engine->Step(kStep)) {
      if (finished.refused) throw Error(*finished.refused);
      scores[finished.tag] = finished.generation.loglikelihood;
    }
  }
  return scores;
}

}  // namespace evald::parity
