#pragma once

#include <functional>
#include <vector>

#include "worker/native/config.h"
#include "worker/native/device.h"
#include "worker/native/weights.h"

namespace evald::native {

/// The forward pass of all families (families/), the same on every device.
class Model {
 public:
  /// All must outlive the model.
  Model(const ModelConfig& config, const ModelWeights& weights, Device* device);

  /// Computes the segments' rows: writes their keys and values to the pages, and asks the device
  /// one wish for each row whose logits are wanted, in order. Without wishes it asks nothing.
  void Forward(const std::vector<Segment>& segments, const std::vector<Wish>& wishes);

  /// The same, with the logits themselves: [wanted rows][vocab_size].
  std::vector<float> Logits(const std::vector<Segment>& segments);

  Device* device() { return device_; }

 private:
  void TryTwice(const std::function<void()>& batch);
  bool Compute(const std::vector<Segment>& segments);
  Rows Normed(const NormWeights& norm);
  void Attention(int64_t index);
  void FeedForwardPart(const LayerWeights& layer, Rows from);
  bool ComputeLayer(int64_t index);

  const ModelConfig& config_;
  const ModelWeights& weights_;
  Device* device_;
};

}  // namespace evald::native
