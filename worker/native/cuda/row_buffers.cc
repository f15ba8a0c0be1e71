#include "worker/native/cuda/row_buffers.h"

#include "worker/native/families/family.h"

namespace evald::native::cuda {
namespace {

constexpr size_t Index(Rows rows) { return static_cast<size_t>(rows); }

}  // namespace

RowBuffers::RowBuffers(const ModelConfig& config, WeightType type)
    : type_(type),
      narrows_(type != WeightType::kF32 && config.family->names.attention_norm == nullptr) {
  width_[Index(Rows::kHidden)] = config.hidden_size;
  width_[Index(Rows::kNormed)] = config.hidden_size;
  width_[Index(Rows::kQkv)] = config.qkv_size();
  width_[Index(Rows::kAttended)] = config.query_size();
  width_[Index(Rows::kInner)] = config.intermediate_size * (config.gated ? 2 : 1);
  width_[Index(Rows::kActivated)] = config.intermediate_size;
  width_[Index(Rows::kOut)] = config.hidden_size;
}

void RowBuffers::Take(int64_t rows) {
  const auto take = [&](Memory* memory, Rows like) {
    *memory = Memory();  // the old memory goes first, so that both need not fit
    *memory = Memory(MemoryKind::kDevice, static_cast<uint64_t>(rows) * row_bytes(like));
  };
  for (size_t i = 0; i < kCount; ++i) take(&memory_[i], static_cast<Rows>(i));
  take(&spare_hidden_, Rows::kHidden);
  take(&spare_qkv_, Rows::kQkv);
  if (narrows_) take(&narrowed_, Rows::kNormed);
  Reset();
}

void RowBuffers::Swap() {
  at_[Index(Rows::kHidden)] = spare_hidden_.data();
  at_[Index(Rows::kQkv)] = spare_qkv_.data();
}

void RowBuffers::Reset() {
  for (size_t i = 0; i < kCount; ++i) at_[i] = memory_[i].data();
}

uint64_t RowBuffers::bytes() const {
  uint64_t sum = narrowed_.bytes() + spare_hidden_.bytes() + spare_qkv_.bytes();
  for (const Memory& memory : memory_) sum += memory.bytes();
  return sum;
}

}  // namespace evald::native::cuda
