#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/read_roots.h"
#include "checkpoint/safetensors.h"

namespace evald::server {

/// What a server knows of a checkpoint, but for the values of its weights.
struct CheckpointShape {
  struct Tensor {
    Dtype dtype = Dtype::kF32;
    std::vector<int64_t> shape;
    bool operator==(const Tensor&) const = default;
  };
  /// Hashes of the files that a server may read, by name: all but the weights, their index, and
  /// what a trainer notes for itself.
  std::map<std::string, std::string> files;
  std::map<std::string, Tensor> tensors;
  bool quantised =
      false;  ///< config.json has a quantization_config, or a tensor has 8 bits or less
  /// The output layer has no tensor of its own, or config.json says that it uses the embedding's.
  bool tied = false;
  /// "bfloat16", "float16" or "float32": the type of most bytes of the weights. "": another one.
  std::string dtype;
};

/// Reads the headers of the weights and the other files of a checkpoint. Throws Error(kInput) if
/// the folder is no checkpoint.
CheckpointShape ReadCheckpointShape(const ReadFolder& folder);

/// The first difference for which the weights of `next` cannot take the place of those of `had`;
/// "" if there is none: "config.json differs", "the tensor model.norm.weight has another shape".
std::string WhyAnotherShape(const CheckpointShape& had, const CheckpointShape& next);

}  // namespace evald::server
