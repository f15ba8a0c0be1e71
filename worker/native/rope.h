#pragma once

#include <cstdint>
#include <vector>

#include "worker/native/config.h"

namespace evald::native {

/// For each pair of dimensions (half of ModelConfig::rotary_dim), the angle by which one position
/// rotates it, in fp32 like transformers' (modeling_rope_utils: default, linear, llama3 and yarn
/// parameters).
std::vector<float> InverseFrequencies(const RopeConfig& rope);

/// Cosines and sines by position, filled as needed. One thread at a time.
class RopeTable {
 public:
  RopeTable() = default;
  /// `round`: see Kernels::round; null: the numbers stay fp32.
  explicit RopeTable(const RopeConfig& rope, void (*round)(float* x, int64_t n) = nullptr);

  /// Makes positions below `positions` available.
  void Grow(int64_t positions);
  const float* cosines(int64_t position) const { return cosines_.data() + position * half_; }
  const float* sines(int64_t position) const { return sines_.data() + position * half_; }

 private:
  float factor_ = 1;  ///< of cosines and sines
  std::vector<float> frequencies_;
  void (*round_)(float* x, int64_t n) = nullptr;
  int64_t half_ = 0;
  std::vector<float> cosines_;  ///< [position][rotary_dim / 2]
  std::vector<float> sines_;
};

/// Rotates the leading dimensions of one head in place. Dimension i is paired with i + rotary_dim /
/// 2 (rotate_half).
void Rotate(float* head, int64_t rotary_dim, const float* cosines, const float* sines);

}  // namespace evald::native
