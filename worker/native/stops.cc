#include "worker/native/stops.h"

#include <algorithm>

namespace evald::native {

StopStrings::StopStrings(const Tokenizer& tokenizer, const SamplingParams& sampling)
    : tokenizer_(tokenizer), until_(sampling.until) {
  if (sampling.think_end.given()) thinking_.emplace(sampling.think_end, &tokenizer);
  if (!thinking_) {
    for (const std::string& text : until_) Add(text);
  }
  if (tokenizer.eos_id() >= 0) {
    eos_ = tokenizer.Decode({tokenizer.eos_id()}, false);
    const bool listed = std::find(until_.begin(), until_.end(), eos_) != until_.end();
    if (thinking_ || !listed) Add(eos_);
  }
  std::stable_sort(stops_.begin(), stops_.end(),
                   [](const Stop& a, const Stop& b) { return a.lookback < b.lookback; });
}

void StopStrings::Add(const std::string& text) {
  stops_.push_back({text, tokenizer_.Encode(text, false).size() + 2});
}

bool StopStrings::Reached(const std::vector<int32_t>& generated) const {
  size_t decoded = 0;
  std::string text;
  for (const Stop& stop : stops_) {
    const size_t count = std::min(stop.lookback, generated.size());
    if (count != decoded) {
      const std::vector<int32_t> last(generated.end() - static_cast<int64_t>(count),
                                      generated.end());
      text = tokenizer_.Decode(last, false);
      decoded = count;
    }
    if (text.find(stop.text) != std::string::npos) return true;
  }
  return false;
}

void StopStrings::Answer(const std::vector<int32_t>& generated, FinishReason reason,
                         Generation* generation) const {
  if (thinking_) {
    return SetAnswer(thinking_->OfTokens(generated), until_, eos_, reason, generation);
  }
  std::string text = tokenizer_.Decode(generated, true);
  for (const std::string& stop : until_) {
    if (!stop.empty()) text = text.substr(0, text.find(stop));
  }
  if (!eos_.empty()) text = text.substr(0, text.find(eos_));
  generation->text = std::move(text);
  generation->finish = reason;
}

}  // namespace evald::native
