#include "worker/native/logits_processors.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "worker/native/sampler.h"

namespace evald::native {
namespace {

using Tokens = std::vector<int32_t>;
constexpr float kNever = -std::numeric_limits<float>::infinity();

// The logits of one token's successor, by token. Tokens beyond the vocabulary are ignored.
class Scores {
 public:
  explicit Scores(std::vector<float>* logits) : logits_(*logits) {}

  template <typename F>
  void Change(int32_t token, const F& change) {
    const auto at = static_cast<size_t>(token);
    if (at < logits_.size()) logits_[at] = change(logits_[at]);
  }
  void Forbid(const Tokens& tokens) {
    for (const int32_t token : tokens) Change(token, [](float) { return kNever; });
  }
  // NaN becomes 0, and an infinity the largest number with its sign.
  void RemoveInvalid() {
    constexpr float kMost = std::numeric_limits<float>::max();
    for (float& score : logits_) score = std::isnan(score) ? 0 : std::clamp(score, -kMost, kMost);
  }
  // Forbids all tokens except `tokens`.
  void Force(const Tokens& tokens) {
    std::fill(logits_.begin(), logits_.end(), kNever);
    for (const int32_t token : tokens) Change(token, [](float) { return 0.0f; });
  }

 private:
  std::vector<float>& logits_;
};

// Biases the last token of each sequence whose other tokens have just been seen.
void AddBiases(const std::vector<TokenBias>& biases, const Tokens& seen, Scores* scores) {
  for (const TokenBias& bias : biases) {
    const size_t before = bias.tokens.size() - 1;
    if (before > seen.size()) continue;
    if (!std::equal(bias.tokens.begin(), bias.tokens.end() - 1,
                    seen.end() - static_cast<int64_t>(before))) {
      continue;
    }
    scores->Change(bias.tokens.back(), [&](float score) { return score + bias.bias; });
  }
}

// Penalizes each token in [begin, end) once.
void Penalize(Tokens::const_iterator begin, Tokens::const_iterator end, float penalty,
              Scores* scores) {
  Tokens tokens(begin, end);
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  for (const int32_t token : tokens) {
    scores->Change(token,
                   [&](float score) { return score < 0 ? score * penalty : score / penalty; });
  }
}

// Forbids tokens that would repeat a sequence of `size` tokens in [0, end) of `tokens`.
void ForbidRepeats(const Tokens& tokens, size_t end, size_t size, Scores* scores) {
  if (size == 0 || tokens.size() < size) return;
  const auto last = tokens.end() - static_cast<int64_t>(size - 1);
  for (size_t first = 0; first + size <= end; ++first) {
    const auto window = tokens.begin() + static_cast<int64_t>(first);
    if (std::equal(last, tokens.end(), window)) {
      scores->Forbid({*(window + static_cast<int64_t>(size - 1))});
    }
  }
}

void LengthenOrEnd(const GenerationSettings& settings, const TokenHistory& history,
                   Scores* scores) {
  const size_t count = history.tokens.size(), generated = count - history.prompt;
  if (count < static_cast<size_t>(settings.min_length) ||
      generated < static_cast<size_t>(settings.min_new_tokens)) {
    scores->Forbid(settings.eos_ids);
  }
  if (settings.forced_bos >= 0 && count == 1) scores->Force({settings.forced_bos});
  if (!settings.forced_eos.empty() && static_cast<int64_t>(count) == history.tokens_max - 1) {
    scores->Force(settings.forced_eos);
  }
  if (settings.remove_invalid_values) scores->RemoveInvalid();
  if (!settings.length_penalty) return;
  const auto start = static_cast<size_t>(settings.length_penalty->start);
  if (generated <= start) return;
  const double times = std::pow(settings.length_penalty->factor, generated - start) - 1;
  for (const int32_t token : settings.eos_ids) {
    scores->Change(token, [&](float score) {
      return std::isfinite(score) ? score + std::abs(score) * static_cast<float>(times) : score;
    });
  }
}

}  // namespace

void ProcessLogits(const GenerationSettings& settings, const TokenHistory& history,
                   std::vector<float>* logits) {
  Scores scores(logits);
  const Tokens& tokens = history.tokens;
  const auto prompt_end = tokens.begin() + static_cast<int64_t>(history.prompt);
  AddBiases(settings.sequence_bias, tokens, &scores);
  if (settings.encoder_repetition_penalty != 1) {  // rewards tokens of the prompt
    const double reward = 1 / settings.encoder_repetition_penalty;
    Penalize(tokens.begin(), prompt_end, static_cast<float>(reward), &scores);
  }
  if (settings.repetition_penalty != 1) {
    Penalize(tokens.begin(), tokens.end(), static_cast<float>(settings.repetition_penalty),
             &scores);
  }
  ForbidRepeats(tokens, tokens.size(), static_cast<size_t>(settings.no_repeat_ngram_size), &scores);
  ForbidRepeats(tokens, history.prompt, static_cast<size_t>(settings.encoder_no_repeat_ngram_size),
                &scores);
  AddBiases(settings.bad_words, tokens, &scores);
  LengthenOrEnd(settings, history, &scores);
  scores.Forbid(settings.suppressed);
  // transformers waits for one more token if the first is forced.
  const bool forced = history.prompt == 1 && settings.forced_bos >= 0;
  if (tokens.size() == history.prompt + (forced ? 1 : 0)) {
    scores.Forbid(settings.suppressed_at_begin);
  }
}

int32_t ChooseToken(const GenerationSettings& settings, const TokenHistory& history, double uniform,
                    std::vector<float> logits) {
  ProcessLogits(settings, history, &logits);
  const auto size = static_cast<int64_t>(logits.size());
  if (settings.do_sample) return Sample(logits.data(), size, settings, uniform);
  return ArgMax(logits.data(), size);
}

}  // namespace evald::native
