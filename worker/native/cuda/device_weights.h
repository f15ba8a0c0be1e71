#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "worker/native/cuda/runtime.h"
#include "worker/native/weights.h"

namespace evald::native::cuda {

struct DeviceLinear {
  const void* weights = nullptr;  ///< [outputs][inputs], all parts one below the other
  const float* bias = nullptr;    ///< [outputs], or null; parts without one have zeros
  int64_t outputs = 0;
  int64_t inputs = 0;
};

/// The type that most bytes of a checkpoint's matrices are stored in.
WeightType TypeOfMost(const ModelWeights& weights);

struct DeviceNorm {
  const float* weight = nullptr;
  const float* bias = nullptr;  ///< or null
};

/// Where each tensor of a ModelWeights lies in the device's memory: one arena, tensors on 256
/// bytes, parts of a Linear below each other, so that fused products need no copy on the device.
/// Norms and biases are fp32. Another checkpoint of the same shape takes the same places (Rebind),
/// so that graphs stay valid. Asked for by the address of what is in the ModelWeights, which must
/// not be moved meanwhile.
class DeviceWeights {
 public:
  /// `type` is what matrices are converted to where they are stored otherwise. Takes the memory.
  /// Throws DeviceError(kOutOfMemory). What is there is undefined until all transfers are done.
  DeviceWeights(const ModelWeights& weights, WeightType type);

  /// True when `weights` would take the same places.
  bool SameShape(const ModelWeights& weights, WeightType type) const;
  /// From now on `weights` are the ones whose places are asked for.
  /// They must be of the same shape.
  void Rebind(const ModelWeights& weights);

  WeightType type() const { return type_; }
  const DeviceLinear& Of(const Linear& linear) const;
  const DeviceNorm& Of(const NormWeights& norm) const;
  /// The embedding: &weights.embedding(), not a copy of it.
  const void* OfMatrix(const Matrix& matrix) const;

  /// What has to be copied: `from` (host, `stored` as it lies there) to `to` (device, in type()).
  struct Transfer {
    const char* from = nullptr;
    char* to = nullptr;
    uint64_t elements = 0;
    WeightType stored = WeightType::kBF16;
    WeightType wanted = WeightType::kBF16;
  };
  /// In order of the files' bytes, so that they can follow a staging.
  const std::vector<Transfer>& transfers() const { return transfers_; }
  uint64_t bytes() const { return arena_.bytes(); }

 private:
  Memory arena_;
  WeightType type_;
  std::vector<int64_t> shape_;  ///< decides where everything lies
  std::vector<Transfer> transfers_;
  std::unordered_map<const void*, DeviceLinear> linears_;
  std::unordered_map<const void*, DeviceNorm> norms_;
  std::unordered_map<const void*, const void*> matrices_;
};

}  // namespace evald::native::cuda
