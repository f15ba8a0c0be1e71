#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "evald/error.h"
#include "evald/generation.h"
#include "evald/request.h"
#include "worker/engine/engine.h"
#include "worker/native/request_plan.h"
#include "worker/native/scheduler.h"
#include "worker/native/stops.h"

namespace evald::native {

/// The parts of the loaded checkpoint that answering needs. Must outlive its jobs.
struct JobContext {
  const Tokenizer* tokenizer = nullptr;
  uint64_t seed = 0;
};

/// One request under way: owns the data of its sequences and makes its generation. The sequences'
/// callbacks point to the job, so it must outlive them and must not move.
class Job {
 public:
  /// `watch` may be null; it is told each token.
  Job(const JobContext& context, uint64_t tag, Request request, RequestPlan plan,
      std::optional<TokenWatch> watch = std::nullopt);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// The sequences to compute; called once. None for a rolling request without tokens.
  std::vector<std::unique_ptr<Sequence>> MakeSequences();

  bool done() const { return sequences_left_ == 0; }
  uint64_t tag() const { return tag_; }
  /// The answer, or why there can be none. Call it once, when done.
  Finished Finish();

 private:
  Generation Answered();
  int32_t Choose(const Sequence& sequence, Answer* answer) const;
  bool OnGenerated(Sequence* sequence, Answer&& answer);
  void Report(int32_t token, Answer&& answer) const;
  bool OnScored(const ScoreWindow& window, int64_t position, Answer&& answer);

  const JobContext& context_;
  uint64_t tag_;
  Request request_;
  RequestPlan plan_;
  std::optional<TokenWatch> watch_;
  std::unique_ptr<StopStrings> stops_;  ///< kGenerateUntil
  std::vector<int32_t> generated_;
  FinishReason finish_ = FinishReason::kScored;
  std::vector<double> window_sums_;  ///< added up in order of windows, not of completion
  bool greedy_ = true;
  int undefined_ = 0;  ///< generated tokens that were chosen from logits without a softmax
  std::optional<Error> refused_;  ///< why no further token can be drawn
  size_t sequences_left_ = 0;
};

}  // namespace evald::native
