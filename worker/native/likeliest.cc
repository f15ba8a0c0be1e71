#include "worker/native/likeliest.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "worker/native/sampler.h"

namespace evald::native {

std::vector<TokenLogProbability> Likeliest(const float* logits, int64_t vocab_size, int count,
                                           double maximum, double log_total) {
  struct Candidate {
    float logit;
    int32_t token;
  };
  const auto wanted = static_cast<size_t>(std::max(count, 0));
  std::vector<Candidate> best;  // in order; few, so that most logits cost one comparison
  best.reserve(wanted + 1);
  for (int64_t i = 0; i < vocab_size && wanted > 0; ++i) {
    const float logit = logits[i];
    const float least =
        best.size() < wanted ? -std::numeric_limits<float>::infinity() : best.back().logit;
    if (!(logit > least)) continue;
    const auto place =
        std::upper_bound(best.begin(), best.end(), logit,
                         [](float value, const Candidate& held) { return value > held.logit; });
    best.insert(place, {logit, static_cast<int32_t>(i)});
    if (best.size() > wanted) best.pop_back();
  }
  std::vector<TokenLogProbability> result;
  for (const Candidate& candidate : best) {
    result.push_back({candidate.token, static_cast<double>(candidate.logit) - maximum - log_total});
  }
  return result;
}

TokenReport ReportOn(int32_t token, const float* logits, int64_t vocab_size, int top) {
  TokenReport report;
  report.token = token;
  if (top < 0) return report;
  if (!HaveSoftmax(logits, vocab_size)) {
    report.log_probability = std::numeric_limits<double>::quiet_NaN();
    return report;
  }
  const double maximum = *std::max_element(logits, logits + vocab_size);
  double total = 0;
  for (int64_t i = 0; i < vocab_size; ++i) total += std::exp(logits[i] - maximum);
  const double log_total = std::log(total);
  report.log_probability = static_cast<double>(logits[token]) - maximum - log_total;
  report.top = Likeliest(logits, vocab_size, top, maximum, log_total);
  return report;
}

}  // namespace evald::native
