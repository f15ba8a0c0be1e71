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

/// The type in which most bytes of a checkpoint's matrices are stored.
WeightType TypeOfMost(const ModelWeights& weights);

struct DeviceNorm {
  const float* weight = nullptr;
  const float* bias = nullptr;  ///< or null
};

/// The places of a ModelWeights' tensors in the device's memory: one arena, tensors aligned to 256
/// bytes, parts of a Linear below each other, so that fused products need no copy on the device.
/// Norms and biases are fp32. Another checkpoint of the same shape takes the same places (Rebind),
/// so that graphs stay valid. A tensor is named by its address in the ModelWeights, which must not
/// be moved meanwhile.
class DeviceWeights {
 public:
  /// Takes the memory. Matrices that are stored in another type than `type` are converted to it.
  /// Throws DeviceError(kOutOfMemory). The content is undefined until all transfers are done.
  DeviceWeights(const ModelWeights& weights, WeightType type);

  /// Whether `weights` would take the same places.
  bool SameShape(const ModelWeights& weights, WeightType type) const;
  /// From now on tensors are named by their addresses in `weights`, which must be of the same
  /// shape.
  void Rebind(const ModelWeights& weights);

  WeightType type() const { return type_; }
  const DeviceLinear& Of(const Linear& linear) const;
  const DeviceNorm& Of(const NormWeights& norm) const;
  /// The place of the embedding. `matrix` must be weights.embedding() itself, not a copy of it.
  const void* OfMatrix(const Matrix& matrix) const;

  /// A copy to make: `from` (host, `stored` as it lies there) to `to` (device, in type()). `from`
  /// is mapped from byte `offset` of the open file `file`, which is faster to read than the mapping
  /// (pull.h). -1: from no file.
  struct Transfer {
    const char* from = nullptr;
    char* to = nullptr;
    uint64_t elements = 0;
    WeightType stored = WeightType::kBF16;
    WeightType wanted = WeightType::kBF16;
    int file = -1;
    uint64_t offset = 0;
  };
  /// In the order of the files' bytes, so that the copies can follow a staging.
  const std::vector<Transfer>& transfers() const { return transfers_; }
  uint64_t bytes() const { return arena_.bytes(); }

 private:
  Memory arena_;
  WeightType type_;
  std::vector<int64_t> shape_;  ///< decides where each tensor lies
  std::vector<Transfer> transfers_;
  std::unordered_map<const void*, DeviceLinear> linears_;
  std::unordered_map<const void*, DeviceNorm> norms_;
  std::unordered_map<const void*, const void*> matrices_;
};

}  // namespace evald::native::cuda
