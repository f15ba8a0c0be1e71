#include "worker/native/rope.h"

#include <algorithm>
#include <cmath>

namespace evald::native {

namespace {

float Llama3Frequency(const RopeConfig& rope, float frequency) {
  const auto factor = static_cast<float>(rope.factor);
  const double low_wavelength = rope.original_positions / rope.low_freq_factor;
  const double high_wavelength = rope.original_positions / rope.high_freq_factor;
  const float wavelength = static_cast<float>(2 * M_PI) / frequency;
  if (wavelength > low_wavelength) return frequency / factor;
  if (wavelength < high_wavelength) return frequency;
  const auto low = static_cast<float>(rope.low_freq_factor);
  const auto high = static_cast<float>(rope.high_freq_factor);
  const float smooth =
      (static_cast<float>(rope.original_positions) / wavelength - low) / (high - low);
  return (1.0f - smooth) * frequency / factor + smooth * frequency;
}

// Yarn keeps fast dimensions, slows slow ones by the factor, and ramps linearly in between (B. Peng
// et al., arXiv 2309.00071).
struct YarnRamp {
  YarnRamp(const RopeConfig& rope, int64_t rotary_dim) {
    const auto dimension = [&](double rotations) {
      return static_cast<double>(rotary_dim) *
             std::log(rope.original_positions / (rotations * 2 * M_PI)) /
             (2 * std::log(rope.theta));
    };
    double first = dimension(rope.beta_fast), last = dimension(rope.beta_slow);
    if (rope.truncate) {
      first = std::floor(first);
      last = std::ceil(last);
    }
    low = static_cast<float>(std::max(first, 0.0));
    high = static_cast<float>(std::min(last, static_cast<double>(rotary_dim - 1)));
    if (low == high) high += 0.001f;
  }
  // The weight of the slowed frequency in pair `pair`.
  float operator()(int64_t pair) const {
    return std::clamp((static_cast<float>(pair) - low) / (high - low), 0.0f, 1.0f);
  }
  float low, high;
};

}  // namespace

std::vector<float> InverseFrequencies(const RopeConfig& rope) {
  const int64_t dim = rope.dim;
  std::vector<float> frequencies;
  const auto factor = static_cast<float>(rope.factor);
  const YarnRamp ramp(rope, dim);
  for (int64_t i = 0; i < dim; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(dim);
    const float base = static_cast<float>(std::pow(rope.theta, static_cast<double>(exponent)));
    const float frequency = 1.0f / base;
    switch (rope.type) {
      case RopeType::kDefault:
      case RopeType::kDynamic:
        frequencies.push_back(frequency);
        break;
      case RopeType::kLinear:
        frequencies.push_back(frequency / factor);
        break;
      case RopeType::kLlama3:
        frequencies.push_back(Llama3Frequency(rope, frequency));
        break;
      case RopeType::kYarn: {
        const float fast = 1.0f - ramp(i / 2);
        frequencies.push_back(1.0f / (factor * base) * (1.0f - fast) + frequency * fast);
        break;
      }
    }
  }
  return frequencies;
}

RopeTable::RopeTable(const RopeConfig& rope, void (*round)(float* x, int64_t n))
    : factor_(static_cast<float>(rope.attention_factor)),
      frequencies_(InverseFrequencies(rope)),
      round_(round),
      half_(static_cast<int64_t>(frequencies_.size())) {}

void RopeTable::Grow(int64_t positions) {
  for (auto p = static_cast<int64_t>(cosines_.size()) / half_; p < positions; ++p) {
    for (const float frequency : frequencies_) {
      // The product, which is the angle, is rounded to fp32 first, as in transformers.
      const double angle = static_cast<float>(p) * frequency;
      cosines_.push_back(static_cast<float>(std::cos(angle)) * factor_);
      sines_.push_back(static_cast<float>(std::sin(angle)) * factor_);
    }
    if (round_ == nullptr) continue;
    round_(cosines_.data() + p * half_, half_);
    round_(sines_.data() + p * half_, half_);
  }
}

void Rotate(float* head, int64_t rotary_dim, const float* cosines, const float* sines) {
  const int64_t half = rotary_dim / 2;
  for (int64_t i = 0; i < half; ++i) {
    const float a = head[i], b = head[i + half];
    head[i] = a * cosines[i] - b * sines[i];
    head[i + half] = b * cosines[i] + a * sines[i];
  }
}

}  // namespace evald::native
