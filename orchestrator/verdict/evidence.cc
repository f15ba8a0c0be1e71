#include "orchestrator/verdict/evidence.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace evald {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kHalvings = 200;  // more than a double's digits: bisection stops moving before

// The x in [low, high] at which a falling function crosses `level`.
double Crossing(const std::function<double(double)>& falling, double level, double low,
                double high) {
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;
    (falling(middle) > level ? low : high) = middle;
  }
  return low + (high - low) / 2;
}

// A score test: (difference from `drop`) / (standard deviation under it). It falls in `drop` and is
// inverted for bounds within [low, high].
class ScoreEvidence : public Evidence {
 public:
  double PAbove(double margin) const override { return NormalCdf(-Score(margin)); }
  double PBelow(double margin) const override { return NormalCdf(Score(margin)); }
  double Lower(double error) const override {
    return Crossing([this](double x) { return Score(x); }, NormalQuantile(1 - error), Low(),
                    estimate());
  }
  double Upper(double error) const override {
    return Crossing([this](double x) { return Score(x); }, NormalQuantile(error), estimate(),
                    High());
  }

 protected:
  virtual double Statistic(double drop) const = 0;
  virtual double Low() const = 0;   // the least possible drop
  virtual double High() const = 0;  // the largest
  // Drops beyond the possible ones are certain.
  double Score(double drop) const {
    if (drop < Low()) return kInfinity;
    if (drop > High()) return -kInfinity;
    return Statistic(drop);
  }
  static double Ratio(double numerator, double variance) {
    if (variance > 0) return numerator / std::sqrt(variance);
    return numerator == 0 ? 0 : std::copysign(kInfinity, numerator);
  }
};

class TangoEvidence : public ScoreEvidence {
 public:
  explicit TangoEvidence(const PairCounts& counts)
      : n_(static_cast<double>(counts.pairs)),
        lost_(static_cast<double>(counts.lost)),
        gained_(static_cast<double>(counts.gained)),
        counts_(counts) {}

  std::string method() const override { return "exact McNemar and Tango's score interval"; }
  double estimate() const override { return (lost_ - gained_) / n_; }
  double PAbove(double margin) const override {
    return margin == 0 ? McNemarOneSided(counts_.lost, counts_.gained)
                       : ScoreEvidence::PAbove(margin);
  }

 protected:
  double Low() const override { return -1; }
  double High() const override { return 1; }
  // Tango 1998: the variance at the maximum-likelihood estimate of P(gained) given the difference,
  // the larger root of 2n q² + B q + C.
  double Statistic(double drop) const override {
    const double b = -lost_ - gained_ + (2 * n_ - lost_ + gained_) * drop;
    const double c = -gained_ * drop * (1 - drop);
    const double root = std::sqrt(std::max(0.0, b * b - 8 * n_ * c));
    double q = b > 0 ? (b + root > 0 ? -2 * c / (b + root) : 0) : (root - b) / (4 * n_);
    q = std::max(q, std::max(0.0, -drop));
    return Ratio(lost_ - gained_ - n_ * drop, n_ * (2 * q + drop * (1 - drop)));
  }

 private:
  double n_, lost_, gained_;
  PairCounts counts_;
};

class WilsonEvidence : public ScoreEvidence {
 public:
  WilsonEvidence(double right, double total, double target, bool lower_is_better)
      : right_(right), total_(total), target_(target), sign_(lower_is_better ? -1 : 1) {}

  std::string method() const override { return "Wilson's score interval"; }
  double estimate() const override { return sign_ * (target_ - right_ / total_); }

 protected:
  double Low() const override { return sign_ > 0 ? target_ - 1 : -target_; }
  double High() const override { return sign_ > 0 ? target_ : 1 - target_; }
  double Statistic(double drop) const override {
    const double p = std::clamp(target_ - sign_ * drop, 0.0, 1.0);
    return Ratio(sign_ * (total_ * p - right_), total_ * p * (1 - p));
  }

 private:
  double right_, total_, target_, sign_;
};

}  // namespace

double NormalCdf(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

double NormalQuantile(double probability) {
  // The upper half follows by symmetry: there NormalCdf has no digits left to tell two z apart.
  if (probability > 0.5) return -NormalQuantile(1 - probability);
  return -Crossing([](double x) { return NormalCdf(-x); }, probability, 0, 40);
}

double McNemarOneSided(int64_t lost, int64_t gained) {
  const int64_t n = lost + gained;
  if (lost <= 0) return 1;
  // Sums the tail from its largest term outwards. Past the middle, each term is the last one times
  // a ratio below 1. Sums the other tail if that is shorter.
  const bool upper = lost > n / 2;
  const int64_t from = upper ? lost : lost - 1;
  double term = std::exp(std::lgamma(n + 1.0) - std::lgamma(from + 1.0) -
                         std::lgamma(n - from + 1.0) - static_cast<double>(n) * std::log(2.0));
  double tail = 0;
  for (int64_t k = from; upper ? k <= n : k >= 0; k += upper ? 1 : -1) {
    tail += term;
    term *= upper ? static_cast<double>(n - k) / static_cast<double>(k + 1)
                  : static_cast<double>(k) / static_cast<double>(n - k + 1);
  }
  return std::clamp(upper ? tail : 1 - tail, 0.0, 1.0);
}

std::unique_ptr<Evidence> PairedProportions(const PairCounts& counts) {
  return std::make_unique<TangoEvidence>(counts);
}

std::unique_ptr<Evidence> ShortOfTarget(int64_t right, int64_t total, double target,
                                        bool lower_is_better) {
  return std::make_unique<WilsonEvidence>(static_cast<double>(right), static_cast<double>(total),
                                          target, lower_is_better);
}

}  // namespace evald
