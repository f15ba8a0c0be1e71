#pragma once

#include <functional>
#include <vector>

#include "worker/native/config.h"
#include "worker/native/device.h"
#include "worker/native/weights.h"

namespace evald::native {

/// The forward pass of all model families (families/), the same on every device.
class Model {
 public:
  /// The three arguments must outlive the model.
  Model(const ModelConfig& config, const ModelWeights& weights, Device* device);

  /// Computes the segments (device.h); a row is one token of a segment. Writes the rows' keys and
  /// values to the segments' pages of the key/value cache. `wishes` has one entry for each row
  /// whose logits are wanted, in the order of the rows: the question that the device answers from
  /// these logits (answer.h). If no logits are wanted, the device is asked nothing.
  void Forward(const std::vector<Segment>& segments, const std::vector<Wish>& wishes);

  /// The same, but returns the logits themselves: [wanted rows][vocab_size].
  std::vector<float> Logits(const std::vector<Segment>& segments);

  Device* device() { return device_; }

 private:
  // If the batch fails and the device can take another way (Device::Recover), begins it again.
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
