#pragma once

#include <cstdint>
#include <vector>

#include "worker/native/config.h"
#include "worker/native/cuda/device_weights.h"
#include "worker/native/cuda/products.h"
#include "worker/native/cuda/runtime.h"

namespace evald::native::cuda {

/// The feed-forward part of layers with experts. The router's choices come to the host, which sorts
/// rows by expert; each expert computes its rows side by side, and the results are added up in the
/// order of the experts, so that a row's sum does not depend on the others. One thread at a time.
class ExpertMixer {
 public:
  /// All must outlive it.
  ExpertMixer(const ModelConfig& config, const DeviceWeights* weights, Products* products);

  /// The products of batches with up to `rows` rows.
  std::vector<ProductShape> Shapes(int64_t rows) const;
  /// Memory for them.
  void Take(int64_t rows);
  /// out [rows][hidden_size] = the weighted sum of the experts that are chosen for `normed`. Waits
  /// for the choices.
  void Mix(const LayerWeights& layer, const void* normed, int64_t rows, float* out, Stream* stream);
  uint64_t bytes() const;

 private:
  /// Rows of one expert, side by side.
  struct Share {
    const FeedForward* expert = nullptr;
    int64_t first = 0;
    int64_t count = 0;
  };

  void Choose(const LayerWeights& layer, const void* normed, int64_t rows, Stream* stream);
  std::vector<Share> Sort(const LayerWeights& layer, int64_t rows, Stream* stream);
  void Compute(const std::vector<Share>& shares, int64_t rows, Stream* stream);
  void AddUp(const std::vector<Share>& shares, float* out, Stream* stream);
  Product ProductOf(const Linear& linear, const Memory& x, const Memory& y, WeightType y_type,
                    const Share& share) const;

  const ModelConfig& config_;
  const DeviceWeights* weights_;
  Products* products_;
  Memory logits_, expert_, weight_, index_;         ///< of the choices
  Memory gathered_, inner_, activated_, weighted_;  ///< rows sorted by expert
  Memory host_;                                     ///< pinned: choices there, sorted rows back
};

}  // namespace evald::native::cuda
