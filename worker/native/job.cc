#include "worker/native/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "evald/error.h"
#include "worker/native/sampler.h"

namespace evald::native {

Job::Job(const JobContext& context, uint64_t tag, Request request, RequestPlan plan)
    : context_(context), tag_(tag), request_(std::move(request)), plan_(std::move(plan)) {
  request_.context.clear();
  request_.context_tokens.clear();
  if (request_.kind == RequestKind::kGenerateUntil) {
    stops_ = std::make_unique<StopStrings>(*context.tokenizer, request_.sampling.until);
    sequences_left_ = 1;
  } else {
    sequences_left_ = plan_.windows.size();
    window_sums_.resize(plan_.windows.size());
  }
}

std::vector<std::unique_ptr<Sequence>> Job::MakeSequences() {
  std::vector<std::unique_ptr<Sequence>> sequences;
  if (request_.kind == RequestKind::kGenerateUntil) {
    auto sequence = std::make_unique<Sequence>();
    sequence->tokens = plan_.prompt;
    const auto prompt = static_cast<int64_t>(plan_.prompt.size());
    sequence->logits_from = prompt - 1;
    sequence->positions_max = prompt + request_.sampling.max_gen_toks - 1;
    sequence->wish = [this, prompt](int64_t position) {
      const auto index = static_cast<int>(position - prompt + 1);  // of the token that is chosen
      return Wish{-1, &request_.sampling, UniformFor(context_.seed, request_, index)};
    };
    sequence->on_answer = [this](Sequence* s, int64_t position, const Answer& answer) {
      return OnGenerated(s, position, answer);
    };
    sequences.push_back(std::move(sequence));
  }
  for (const ScoreWindow& window : plan_.windows) {
    auto sequence = std::make_unique<Sequence>();
    sequence->tokens = window.tokens;
    sequence->logits_from = window.score_from;
    sequence->positions_max = static_cast<int64_t>(window.tokens.size());
    sequence->wish = [&window](int64_t position) {
      return Wish{window.targets[static_cast<size_t>(position - window.score_from)]};
    };
    sequence->on_answer = [this, &window](Sequence*, int64_t position, const Answer& answer) {
      return OnScored(window, position, answer);
    };
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

void Job::CheckFinite(const Answer& answer, int64_t position) const {
  if (answer.finite) return;
  throw Error(
      ErrorKind::kInput,
      fmt::format("{}: the logits after token {} are not finite", RequestName(request_), position),
      "the checkpoint's weights hold NaN or infinite values, or overflow");
}

bool Job::OnGenerated(Sequence* sequence, int64_t position, const Answer& answer) {
  CheckFinite(answer, position);
  const SamplingParams& sampling = request_.sampling;
  const int32_t token = answer.token;
  generated_.push_back(token);
  sequence->tokens.push_back(token);
  if (std::count(context_.eos_ids.begin(), context_.eos_ids.end(), token) > 0) {
    finish_ = FinishReason::kEos;
  } else if (stops_->Reached(generated_)) {
    finish_ = token == context_.tokenizer->eos_id() ? FinishReason::kEos : FinishReason::kStop;
  } else if (static_cast<int>(generated_.size()) == sampling.max_gen_toks) {
    finish_ = FinishReason::kLength;
  } else {
    return false;
  }
  --sequences_left_;
  return true;
}

bool Job::OnScored(const ScoreWindow& window, int64_t position, const Answer& answer) {
  CheckFinite(answer, position);
  const auto index = static_cast<size_t>(position - window.score_from);
  window_sums_[static_cast<size_t>(&window - plan_.windows.data())] += answer.log_probability;
  greedy_ = greedy_ && answer.token == window.targets[index];
  if (index + 1 < window.targets.size()) return false;
  --sequences_left_;
  return true;
}

Generation Job::Finish() {
  Generation generation;
  generation.doc_id = request_.doc_id;
  generation.idx = request_.idx;
  generation.repeat = request_.repeat;
  generation.kind = request_.kind;
  generation.finish = finish_;
  generation.tokens_in = plan_.tokens_in;
  generation.truncated = plan_.truncated;
  if (request_.kind == RequestKind::kGenerateUntil) {
    generation.text = stops_->Text(generated_);
    generation.tokens_out = static_cast<int>(generated_.size());
  } else {
    for (const double sum : window_sums_) generation.loglikelihood += sum;
    generation.is_greedy = request_.kind == RequestKind::kLoglikelihood && greedy_;
    generation.tokens_out = plan_.tokens_out;
  }
  return generation;
}

}  // namespace evald::native
