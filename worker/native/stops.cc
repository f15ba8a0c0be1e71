#include "worker/native/stops.h"

#include <algorithm>
#include <utility>

namespace evald::native {

StopStrings::StopStrings(const Tokenizer& tokenizer, std::vector<std::string> until)
    : tokenizer_(tokenizer), until_(std::move(until)) {
  if (tokenizer.eos_id() >= 0) {
    const std::string eos = tokenizer.Decode({tokenizer.eos_id()}, false);
    if (std::find(until_.begin(), until_.end(), eos) == until_.end()) until_.push_back(eos);
  }
  for (const std::string& text : until_) {
    stops_.push_back({text, tokenizer.Encode(text, false).size() + 2});
  }
  std::stable_sort(stops_.begin(), stops_.end(),
                   [](const Stop& a, const Stop& b) { return a.lookback < b.lookback; });
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

std::string StopStrings::Text(const std::vector<int32_t>& generated) const {
  std::string text = tokenizer_.Decode(generated, true);
  for (const std::string& stop : until_) {
    if (!stop.empty()) text = text.substr(0, text.find(stop));
  }
  return text;
}

}  // namespace evald::native
