#pragma once

#include <cstdint>

#include "worker/native/config.h"
#include "worker/native/cuda/convert.h"
#include "worker/native/cuda/runtime.h"
#include "worker/native/device.h"
#include "worker/native/kernels.h"

namespace evald::native::cuda {

/// The rows of activations of a batch, in device memory. kHidden and kOut are fp32, the others of
/// the weights' type. One thread at a time.
class RowBuffers {
 public:
  RowBuffers(const ModelConfig& config, WeightType type);

  /// Memory for `rows` rows of each, whose content is lost.
  void Take(int64_t rows);
  /// Where the batch's rows lie; of kHidden and kQkv after Swap, where those that are kept do.
  char* At(Rows rows) const { return at_[static_cast<size_t>(rows)]; }
  /// kHidden in the weights' type, of models that multiply it without a norm.
  char* narrowed() const { return narrowed_.data(); }
  char* spare_hidden() const { return spare_hidden_.data(); }
  char* spare_qkv() const { return spare_qkv_.data(); }
  /// kHidden and kQkv lie where the spare ones did, until Reset.
  void Swap();
  void Reset();
  uint64_t bytes() const;

  int64_t width(Rows rows) const { return width_[static_cast<size_t>(rows)]; }
  WeightType type(Rows rows) const {
    return rows == Rows::kHidden || rows == Rows::kOut ? WeightType::kF32 : type_;
  }
  uint64_t row_bytes(Rows rows) const {
    return static_cast<uint64_t>(width(rows)) * ElementBytes(type(rows));
  }

 private:
  static constexpr size_t kCount = 7;  // of Rows
  WeightType type_;
  bool narrows_;
  int64_t width_[kCount];
  Memory memory_[kCount];
  Memory narrowed_, spare_hidden_, spare_qkv_;
  char* at_[kCount] = {};
};

}  // namespace evald::native::cuda
