#pragma once

#include <cstdint>
#include <vector>

#include "worker/native/cuda/kernels.h"
#include "worker/native/device.h"

/// Attention over pages. Keys are cut into chunks of kChunkPages pages by absolute position. Each
/// (row, head, chunk) gives a partial result; a second kernel joins a row's chunks in their order.
/// So the order of summation depends on absolute positions alone. Neighbouring rows whose chunk
/// lies in the same pages are computed by the same block, which reads a prefix that sequences share
/// once (cascade).
namespace evald::native::cuda {

inline constexpr int64_t kChunkPages = 8;
inline constexpr int64_t kChunkPositions = kChunkPages * kPagePositions;

/// Neighbouring rows [first, first + count) with one chunk. Up to the last position that any of
/// them sees in the chunk, its pages are the same for all.
struct AttendItem {
  int32_t first;
  int32_t count;
  int32_t chunk;
  int32_t table;  ///< that of any one of the rows
};

/// The plan of attention of one batch, made on the CPU. Each window of the model has a plan of its
/// own.
struct AttentionPlan {
  /// First the items whose rows of queries need a whole block (attention_tiles.h). In each kind the
  /// most expensive come first. The kernels rely on this order. Padding items come last.
  std::vector<AttendItem> items;
  /// [rows + 1]: where a row's partial results begin; one result per chunk seen
  std::vector<int32_t> partials;
  int64_t chunks_max = 0;  ///< of any row
};

/// `group` is heads / kv_heads. Rows of segments follow one another, as in BatchRows; `pages` of
/// segments are compared by address. AttendItem::table is correct only if the page tables lie
/// one after the other, each up to its segment's last position.
AttentionPlan PlanAttention(const std::vector<Segment>& segments, int64_t window, int64_t group);

struct AttendArgs {
  BatchRows batch;
  const void* qkv;  ///< rotated, as in HeadsArgs
  KvLayout kv;
  int64_t layer, heads;
  bool packed;
  int64_t window;  ///< 0: all
  float scale;
  /// On the device, like all pointers here; an item with count 0 is padding
  const AttendItem* items;
  int64_t item_count;
  const int32_t* partials;
  void* scratch;  ///< AttentionScratchBytes of all partial results
  void* out;      ///< [rows][heads * head_dim]
};
uint64_t AttentionScratchBytes(int64_t partials, int64_t heads, int64_t head_dim);
/// bf16 and fp16 run on tensor cores (head_dim a multiple of 16 up to 256). Everything else up to
/// 512 runs in fp32.
void Attend(const AttendArgs& args, const Stream& stream);

}  // namespace evald::native::cuda
