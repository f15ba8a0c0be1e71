#include "worker/native/rope.h"

#include <cmath>

namespace evald::native {

std::vector<float> InverseFrequencies(const RopeConfig& rope, int64_t head_dim) {
  std::vector<float> frequencies;
  for (int64_t i = 0; i < head_dim; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(head_dim);
    const float base = static_cast<float>(std::pow(rope.theta, static_cast<double>(exponent)));
    float frequency = 1.0f / base;
    const auto factor = static_cast<float>(rope.factor);
    if (rope.type == RopeType::kLinear) {
      frequency /= factor;
    } else if (rope.type == RopeType::kLlama3) {
      const double low_wavelength = rope.original_positions / rope.low_freq_factor;
      const double high_wavelength = rope.original_positions / rope.high_freq_factor;
      const float wavelength = static_cast<float>(2 * M_PI) / frequency;
      if (wavelength > low_wavelength) {
        frequency /= factor;
      } else if (wavelength >= high_wavelength) {
        const auto low = static_cast<float>(rope.low_freq_factor);
        const auto high = static_cast<float>(rope.high_freq_factor);
        const float smooth =
            (static_cast<float>(rope.original_positions) / wavelength - low) / (high - low);
        frequency = (1.0f - smooth) * frequency / factor + smooth * frequency;
      }
    }
    frequencies.push_back(frequency);
  }
  return frequencies;
}

RopeTable::RopeTable(const RopeConfig& rope, int64_t head_dim)
    : half_(head_dim / 2), frequencies_(InverseFrequencies(rope, head_dim)) {}

void RopeTable::Grow(int64_t positions) {
  for (auto p = static_cast<int64_t>(cosines_.size()) / half_; p < positions; ++p) {
    for (const float frequency : frequencies_) {
      // The product is rounded to fp32 first, as in transformers; it decides the angle.
      const double angle = static_cast<float>(p) * frequency;
      cosines_.push_back(static_cast<float>(std::cos(angle)));
      sines_.push_back(static_cast<float>(std::sin(angle)));
    }
  }
}

void Rotate(float* head, int64_t head_dim, const float* cosines, const float* sines) {
  const int64_t half = head_dim / 2;
  for (int64_t i = 0; i < half; ++i) {
    const float a = head[i], b = head[i + half];
    head[i] = a * cosines[i] - b * sines[i];
    head[i + half] = b * cosines[i] + a * sines[i];
  }
}

}  // namespace evald::native
