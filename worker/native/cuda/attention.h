#pragma once

#include <cstdint>
#include <vector>

#include "worker/native/cuda/kernels.h"
#include "worker/native/device.h"

/// Attention over pages. Keys are cut into chunks of kChunkPages pages by absolute position. Each
/// (row, head, chunk) gives a partial result; a second kernel joins a row's chunks in their order.
/// So the order of summation depends on absolute positions alone. Rows beside each other whose
/// chunk lies in the same pages are computed by the same block, which reads a prefix that sequences
/// share once (cascade).
namespace evald::native::cuda {

inline constexpr int64_t kChunkPages = 8;

/// Neighbouring rows [first, first + count) with one chunk, whose pages up to the last position
/// that any of them sees in it are the same for all.
struct AttendItem {
  int32_t first;
  int32_t count;
  int32_t chunk;
  int32_t table;  ///< any one of the rows'
};

/// What attention of one batch needs beside its rows, planned on the CPU. For each window that the
/// model has its own.
struct AttentionPlan {
  /// First those whose rows of queries need a whole block (attention_tiles.h), in each kind the
  /// dearest first; the kernels rely on it. What pads comes after all.
  std::vector<AttendItem> items;
  std::vector<int32_t>
      partials;            ///< [rows + 1]: where a row's partial results begin; one per chunk seen
  int64_t chunks_max = 0;  ///< of any row
};

/// `group` is heads / kv_heads. Rows of segments one after the other, as in BatchRows; `pages` of
/// segments are compared by address. Items' tables are right where page tables lie one after the
/// other, each up to its segment's last position.
AttentionPlan PlanAttention(const std::vector<Segment>& segments, int64_t window, int64_t group);

struct AttendArgs {
  BatchRows batch;
  const void* qkv;  ///< rotated, as in HeadsArgs
  KvLayout kv;
  int64_t layer, heads;
  bool packed;
  int64_t window;  ///< 0: all
  float scale;
  const AttendItem* items;  ///< on the device, like all; an item with count 0 only pads
  int64_t item_count;
  const int32_t* partials;
  void* scratch;  ///< AttentionScratchBytes of all partial results
  void* out;      ///< [rows][heads * head_dim]
};
uint64_t AttentionScratchBytes(int64_t partials, int64_t heads, int64_t head_dim);
/// bf16 and fp16 by tensor cores (head_dim a multiple of 16 up to 256), everything else up to 512
/// in fp32.
void Attend(const AttendArgs& args, const Stream& stream);

}  // namespace evald::native::cuda
