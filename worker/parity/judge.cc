#include "worker/parity/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace evald::parity {
namespace {

// Scores of some parts.
class Sum {
 public:
  void Add(const Expected& expected, double found, size_t tokens) {
    if (!std::isfinite(expected.exact)) return;
    const double root = std::sqrt(static_cast<double>(tokens));
    const double distance = std::fabs(found - expected.exact) / root;
    rounding_ += std::fabs(expected.rounded - expected.exact) / root;
    distance_ += distance;
    // NaN is larger than anything.
    if (!(distance <= distance_of_worst_)) {
      distance_of_worst_ = distance;
      worst_ = fmt::format("{:.4f} where evald's own engine has {:.4f}", found, expected.exact);
    }
    ++count_;
  }

  Distance Result() const {
    if (count_ == 0) return {};
    const double count = count_;
    return {distance_ / count, distance_of_worst_, rounding_ / count, count_};
  }
  const std::string& worst() const { return worst_; }

 private:
  double distance_ = 0, rounding_ = 0, distance_of_worst_ = 0;
  int count_ = 0;
  std::string worst_;
};

bool Agrees(const Distance& distance, double expected) {
  return distance.mean <= std::max(kMeanFloor, kMeanFactor * expected) &&
         distance.largest <= std::max(kLargestFloor, kLargestFactor * expected);
}

std::string Difference(const std::string& name, const Sum& sum, double expected) {
  const Distance distance = sum.Result();
  return fmt::format(
      "on {} its log-probabilities are {:.4f} nats off on average, where rounding explains {:.4f}; "
      "the worst is {}",
      name, distance.mean, expected, sum.worst());
}

// Numbers of 8 bits are about 16 times as coarse as bf16; other weights differ by more.
constexpr double kCoarser = 30;

std::string Causes(const Distance& all, double expected, bool only_long) {
  if (only_long)
    return "short texts agree: see whether the engine knows the checkpoint's rope scaling and "
           "sliding window";
  if (all.mean <= kCoarser * expected)
    return "see whether the engine computes in a coarser type than it says (quantisation, fp8 keys "
           "and values), or with other parameters of config.json (rope scaling)";
  return "see whether the engine has the weights of this checkpoint, all of them in their places, "
         "and its config.json";
}

}  // namespace

Verdict Judge(const Reference& reference,
              const std::vector<std::vector<std::optional<double>>>& found) {
  Sum all, short_ones;
  std::vector<std::pair<std::string, Sum>> judged;
  for (size_t p = 0; p < found.size() && p < reference.expected.size(); ++p) {
    const Part& part = reference.parts[p];
    Sum own;
    for (size_t w = 0; w < found[p].size() && w < reference.expected[p].size(); ++w) {
      if (!found[p][w]) continue;
      const size_t tokens = part.windows[w].targets.size();
      for (Sum* sum : {&all, part.is_long ? &own : &short_ones})
        sum->Add(reference.expected[p][w], *found[p][w], tokens);
    }
    if (part.is_long) judged.emplace_back(part.name, own);
  }
  judged.emplace(judged.begin(), "short texts", short_ones);
  Verdict verdict;
  verdict.all = all.Result();
  for (const auto& [name, sum] : judged) {
    const Distance distance = sum.Result();
    const double expected = std::max(distance.expected, verdict.all.expected);
    if (distance.scores == 0 || Agrees(distance, expected)) continue;
    const bool only_long = &sum != &judged.front().second;
    verdict.difference = Difference(name, sum, expected);
    verdict.causes = Causes(distance, expected, only_long);
    break;
  }
  return verdict;
}

}  // namespace evald::parity
