#include <algorithm>
#include <cmath>
#include <numeric>

#include "orchestrator/verdict/evidence.h"

namespace evald {
namespace {

constexpr double kUndefinedShareMax = 0.01;
// Judging takes time for each of these: more documents are left out in groups, and drawn less
// often.
constexpr size_t kLeftOutMax = 1000;
constexpr double kDrawsMax = 3e8;
constexpr int kReplicatesMin = 2000;

// The finalizer of SplitMix64, used as a function of a counter (Steele, Lea and Flood 2014, "Fast
// splittable pseudorandom number generators").
uint64_t Mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

void Draw(const BootstrapInput& input, int replicate, Resample* resample) {
  for (size_t s = 0; s < input.sizes.size(); ++s) {
    const uint64_t key = Mixed(Mixed(input.seed + s) + static_cast<uint64_t>(replicate));
    const uint64_t size = input.sizes[s];
    for (size_t i = 0; i < size; ++i) {
      (*resample)[s][i] = static_cast<uint32_t>(((Mixed(key + i) >> 32) * size) >> 32);
    }
  }
}

Resample Everything(const std::vector<size_t>& sizes) {
  Resample all;
  for (const size_t size : sizes) {
    all.emplace_back(size);
    std::iota(all.back().begin(), all.back().end(), 0U);
  }
  return all;
}

// Efron's acceleration for several samples, from the drops without one document each, or of many
// documents, without one of kLeftOutMax groups each: the acceleration of the sum of a group's
// documents among as many sums is that of the documents.
double Acceleration(const BootstrapInput& input) {
  double cubes = 0, squares = 0;
  Resample all = Everything(input.sizes);
  for (size_t s = 0; s < input.sizes.size(); ++s) {
    const size_t size = input.sizes[s];
    if (size < 2) continue;
    const size_t groups = std::min(size, kLeftOutMax);
    const double n = static_cast<double>(groups);
    std::vector<double> without;
    for (size_t group = 0; group < groups; ++group) {
      all[s].clear();
      for (size_t i = 0; i < size; ++i) {
        if (i % groups != group) all[s].push_back(static_cast<uint32_t>(i));
      }
      without.push_back(input.drop(all));
    }
    all[s] = Everything({size})[0];
    const double mean = std::accumulate(without.begin(), without.end(), 0.0) / n;
    for (const double value : without) {
      const double influence = (n - 1) * (mean - value) / n;
      cubes += influence * influence * influence;
      squares += influence * influence;
    }
  }
  const double a = cubes / (6 * std::pow(squares, 1.5));
  return std::isfinite(a) ? a : 0;
}

int ReplicatesOf(const BootstrapInput& input) {
  const double documents = std::accumulate(input.sizes.begin(), input.sizes.end(), 0.0);
  const double affordable = std::max<double>(kReplicatesMin, kDrawsMax / documents);
  return static_cast<int>(std::min<double>(input.replicates, affordable));
}

class BcaEvidence : public Evidence {
 public:
  BcaEvidence(double estimate, std::vector<double> sorted, double acceleration)
      : estimate_(estimate), sorted_(std::move(sorted)), acceleration_(acceleration) {
    bias_ = NormalQuantile(Share(estimate_));
  }

  std::string method() const override { return "BCa bootstrap over documents"; }
  double estimate() const override { return estimate_; }
  double PAbove(double margin) const override { return Level(margin); }
  double PBelow(double margin) const override { return 1 - Level(margin); }
  double Lower(double error) const override { return Quantile(error); }
  double Upper(double error) const override { return Quantile(1 - error); }

 private:
  // The share of replicates below `x`, with ties by half. It is never closer to 0 or 1 than the
  // number of replicates shows.
  double Share(double x) const {
    const auto below = std::lower_bound(sorted_.begin(), sorted_.end(), x) - sorted_.begin();
    const auto up_to = std::upper_bound(sorted_.begin(), sorted_.end(), x) - sorted_.begin();
    const double n = static_cast<double>(sorted_.size());
    return std::clamp(static_cast<double>(below + up_to) / (2 * n), 1 / (n + 1), n / (n + 1));
  }

  // The error at which a bound would be `x`: the inverse of Quantile.
  double Level(double x) const {
    // No spread: certain, except for the number of replicates
    if (sorted_.front() == sorted_.back()) {
      const double floor = 1 / (static_cast<double>(sorted_.size()) + 1);
      return x < sorted_.front() ? floor : x > sorted_.front() ? 1 - floor : 0.5;
    }
    const double w = NormalQuantile(Share(x)) - bias_;
    const double scale = 1 + acceleration_ * w;
    const double n = static_cast<double>(sorted_.size());
    if (scale <= 0) return w < 0 ? 1 / (n + 1) : n / (n + 1);
    return std::clamp(NormalCdf(w / scale - bias_), 1 / (n + 1), n / (n + 1));
  }

  // Efron 1987, equation 3.9, with linear interpolation between replicates.
  double Quantile(double probability) const {
    const double z = bias_ + NormalQuantile(probability);
    const double scale = 1 - acceleration_ * z;
    const double share = scale > 0 ? NormalCdf(bias_ + z / scale) : (z > 0 ? 1.0 : 0.0);
    const double place = share * static_cast<double>(sorted_.size() - 1);
    const size_t below = static_cast<size_t>(place);
    const size_t above = std::min(below + 1, sorted_.size() - 1);
    const double fraction = place - static_cast<double>(below);
    return sorted_[below] + fraction * (sorted_[above] - sorted_[below]);
  }

  double estimate_;
  std::vector<double> sorted_;
  double acceleration_;
  double bias_ = 0;
};

}  // namespace

std::unique_ptr<Evidence> Bootstrap(const BootstrapInput& input) {
  Resample resample = Everything(input.sizes);
  const double estimate = input.drop(resample);
  if (!std::isfinite(estimate)) return nullptr;
  std::vector<double> drops;
  const int replicates = ReplicatesOf(input);
  drops.reserve(static_cast<size_t>(replicates));
  for (int r = 0; r < replicates; ++r) {
    Draw(input, r, &resample);
    const double drop = input.drop(resample);
    if (std::isfinite(drop)) drops.push_back(drop);
  }
  const double undefined = static_cast<double>(replicates) - static_cast<double>(drops.size());
  if (drops.empty() || undefined > kUndefinedShareMax * replicates) return nullptr;
  std::sort(drops.begin(), drops.end());
  const double acceleration = Acceleration(input);
  return std::make_unique<BcaEvidence>(estimate, std::move(drops), acceleration);
}

}  // namespace evald
