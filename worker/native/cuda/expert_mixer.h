#pragma once

#include <cstdint>

#include "worker/native/config.h"
#include "worker/native/cuda/device_weights.h"
#include "worker/native/cuda/kernels.h"
#include "worker/native/cuda/products.h"
#include "worker/native/cuda/runtime.h"

namespace evald::native::cuda {

/// The feed-forward part of layers with experts. All of it happens on the device, so that nothing
/// waits for the router and a batch can be captured. Choices are sorted by expert, one product
/// covers all experts' rows, and each row's results are added up in the order in which its experts
/// were chosen. A row's bits do not depend on the others. For one thread at a time.
class ExpertMixer {
 public:
  /// All arguments must outlive the mixer. `products` must know the router's product.
  ExpertMixer(const ModelConfig& config, const DeviceWeights* weights, Products* products);

  /// Memory for batches with up to `rows` rows.
  void Take(int64_t rows);
  /// out [rows][hidden_size] = the weighted sum of the experts that are chosen for `normed`.
  void Mix(const LayerWeights& layer, const void* normed, int64_t rows, float* out,
           const Stream& stream);
  uint64_t bytes() const;

 private:
  void Choose(const LayerWeights& layer, const void* normed, int64_t rows, const Stream& stream);
  void Compute(const LayerWeights& layer, const void* normed, int64_t rows, const Stream& stream);
  /// One Linear of all experts of a layer, as a product over all slots.
  ExpertProductArgs ProductOf(const LayerWeights& layer, Linear FeedForward::* linear,
                              int64_t rows) const;

  const ModelConfig& config_;
  const DeviceWeights* weights_;
  Products* products_;
  Memory logits_, expert_, weight_;      ///< the choices
  Memory begin_, row_, slot_;            ///< their order by expert
  Memory inner_, activated_, weighted_;  ///< by slot
};

}  // namespace evald::native::cuda
