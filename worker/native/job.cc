#include "worker/native/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "evald/error.h"
#include "worker/native/likeliest.h"
#include "worker/native/logits_processors.h"
#include "worker/native/sampler.h"

namespace evald::native {

Job::Job(const JobContext& context, uint64_t tag, Request request, RequestPlan plan,
         std::optional<TokenWatch> watch)
    : context_(context),
      tag_(tag),
      request_(std::move(request)),
      plan_(std::move(plan)),
      watch_(std::move(watch)) {
  request_.context.clear();
  request_.context_tokens.clear();
  if (request_.kind == RequestKind::kGenerateUntil) {
    stops_ = std::make_unique<StopStrings>(*context.tokenizer, request_.sampling);
    sequences_left_ = 1;
  } else {
    sequences_left_ = plan_.windows.size();
    window_sums_.resize(plan_.windows.size());
  }
}

std::vector<std::unique_ptr<Sequence>> Job::MakeSequences() {
  std::vector<std::unique_ptr<Sequence>> sequences;
  const int top = watch_ ? watch_->top : TokenWatch::kNoLogProbabilities;
  if (request_.kind == RequestKind::kGenerateUntil) {
    auto sequence = std::make_unique<Sequence>();
    sequence->tokens = plan_.prompt;
    const auto prompt = static_cast<int64_t>(plan_.prompt.size());
    sequence->logits_from = prompt - 1;
    sequence->positions_max = prompt + plan_.tokens_max - 1;
    const bool chosen_here = plan_.settings.changes_logits();
    sequence->waits = chosen_here;
    sequence->wish = [this, prompt, chosen_here, top](int64_t position) {
      const auto index = static_cast<int>(position - prompt + 1);  // of the token to be chosen
      return Wish{-1, &plan_.settings, UniformFor(context_.seed, request_, index), chosen_here,
                  top};
    };
    sequence->on_answer = [this](Sequence* s, int64_t, Answer&& answer) {
      return OnGenerated(s, std::move(answer));
    };
    sequences.push_back(std::move(sequence));
  }
  for (const ScoreWindow& window : plan_.windows) {
    auto sequence = std::make_unique<Sequence>();
    sequence->tokens = window.tokens;
    sequence->logits_from = window.score_from;
    sequence->positions_max = static_cast<int64_t>(window.tokens.size());
    sequence->wish = [&window, top](int64_t position) {
      Wish wish;
      wish.target = window.targets[static_cast<size_t>(position - window.score_from)];
      wish.top = top;
      return wish;
    };
    sequence->on_answer = [this, &window](Sequence*, int64_t position, Answer&& answer) {
      return OnScored(window, position, std::move(answer));
    };
    sequences.push_back(std::move(sequence));
  }
  for (const auto& sequence : sequences) sequence->owner = tag_;
  return sequences;
}

// The device's choice or, if settings change the logits, a choice made here. Greedy choice works
// with any logits; torch.multinomial draws none from logits without a softmax.
int32_t Job::Choose(const Sequence& sequence, Answer* answer) const {
  if (answer->logits.empty()) {
    if (answer->defined || !plan_.settings.do_sample) return answer->token;
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: the logits after token {} are not finite, so that none can be drawn",
                    RequestName(request_), sequence.tokens.size() - 1),
        "the checkpoint's weights hold NaN or infinite values, or overflow");
  }
  const size_t prompt = plan_.prompt.size();
  const TokenHistory history{sequence.tokens, prompt,
                             static_cast<int64_t>(prompt) + plan_.tokens_max};
  const double uniform = UniformFor(context_.seed, request_, static_cast<int>(generated_.size()));
  try {
    // A report needs them afterwards
    return ChooseToken(plan_.settings, history, uniform,
                       watch_ ? answer->logits : std::move(answer->logits));
  } catch (Error& e) {
    e.AddContext(RequestName(request_));
    throw;
  }
}

bool Job::OnGenerated(Sequence* sequence, Answer&& answer) {
  undefined_ += answer.defined ? 0 : 1;
  const std::vector<int32_t>& ends = plan_.settings.eos_ids;
  int32_t token = 0;
  try {
    token = Choose(*sequence, &answer);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kInput) throw;
    refused_ = e;  // other requests' answers may have landed in the same batch
    --sequences_left_;
    return true;
  }
  if (watch_) Report(token, std::move(answer));
  generated_.push_back(token);
  sequence->tokens.push_back(token);
  if (std::count(ends.begin(), ends.end(), token) > 0) {
    finish_ = FinishReason::kEos;
  } else if (stops_->Reached(generated_)) {
    finish_ = token == context_.tokenizer->eos_id() ? FinishReason::kEos : FinishReason::kStop;
  } else if (static_cast<int>(generated_.size()) == plan_.tokens_max) {
    finish_ = FinishReason::kLength;
  } else {
    return false;
  }
  --sequences_left_;
  return true;
}

// The settings may have changed logits that came here; what is reported are the model's own.
void Job::Report(int32_t token, Answer&& answer) const {
  if (!answer.logits.empty()) {
    const auto vocab = static_cast<int64_t>(answer.logits.size());
    return watch_->on_token(ReportOn(token, answer.logits.data(), vocab, watch_->top));
  }
  watch_->on_token({token, answer.log_probability, std::move(answer.top)});
}

bool Job::OnScored(const ScoreWindow& window, int64_t position, Answer&& answer) {
  const auto index = static_cast<size_t>(position - window.score_from);
  window_sums_[static_cast<size_t>(&window - plan_.windows.data())] += answer.log_probability;
  greedy_ = greedy_ && answer.token == window.targets[index];
  if (watch_) Report(window.targets[index], std::move(answer));
  if (index + 1 < window.targets.size()) return false;
  --sequences_left_;
  return true;
}

Finished Job::Finish() {
  if (refused_) return {tag_, {}, std::move(refused_)};
  return {tag_, Answered()};
}

Generation Job::Answered() {
  Generation generation;
  generation.doc_id = request_.doc_id;
  generation.idx = request_.idx;
  generation.repeat = request_.repeat;
  generation.kind = request_.kind;
  generation.finish = finish_;
  generation.tokens_in = plan_.tokens_in;
  generation.truncated = plan_.truncated;
  if (request_.kind == RequestKind::kGenerateUntil) {
    stops_->Answer(generated_, finish_, &generation);
    generation.tokens_out = static_cast<int>(generated_.size());
    generation.undefined = undefined_;
  } else {
    for (const double sum : window_sums_) generation.loglikelihood += sum;
    generation.is_greedy = request_.kind == RequestKind::kLoglikelihood && greedy_;
    generation.tokens_out = plan_.tokens_out;
  }
  return generation;
}

}  // namespace evald::native
