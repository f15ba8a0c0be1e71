#pragma once

#include <cstdint>

#include "worker/native/config.h"
#include "worker/native/cuda/convert.h"
#include "worker/native/cuda/runtime.h"
#include "worker/native/device.h"
#include "worker/native/kernels.h"

namespace evald::native::cuda {

/// A batch's rows of activations, in device memory. kHidden and kOut are fp32, the others have the
/// weights' type. For one thread at a time.
class RowBuffers {
 public:
  RowBuffers(const ModelConfig& config, WeightType type);

  /// Takes memory for `rows` rows of each kind; old content is lost.
  void Take(int64_t rows);
  /// The place of the batch's rows. After Swap, kHidden and kQkv are the kept rows.
  char* At(Rows rows) const { return at_[static_cast<size_t>(rows)]; }
  /// kHidden in the weights' type, for models that multiply it without a norm.
  char* narrowed() const { return narrowed_.data(); }
  char* spare_hidden() const { return spare_hidden_.data(); }
  char* spare_qkv() const { return spare_qkv_.data(); }
  /// Puts kHidden and kQkv in the place of the spare ones, until Reset.
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
