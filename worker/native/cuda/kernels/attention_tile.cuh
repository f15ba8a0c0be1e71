#pragma once

#include "worker/native/cuda/kernels/attention_args.cuh"

/// Attention by tensor cores, as in FlashAttention-2 (Dao 2023). The scores of a page's keys, their
/// weights against the top so far, and the values' weighted sums stay in a warp's registers.
///
/// A warp has 16 rows of queries (batch row and head of the group) and goes through the pages of a
/// chunk in order. It works alone, with keys and values of its own. If an item has more rows, four
/// warps work beside each other and read keys and values together. Both run the same code on their
/// rows, so a row's bits do not depend on its neighbours. A page that a row does not see leaves its
/// sums unchanged: weights are zero and the top stays.
///
/// (That is why stored values are finite: see Device::StoreKeysAndValues.)
namespace evald::native::cuda {

inline constexpr int kTileWarps = 4;

/// The layout of keys and values in shared memory: slots of some positions' keys, or values, which
/// are filled asynchronously in turn.
template <int kDim>
struct TileShape {
  static constexpr int kPieces = kDim / 8;  // pieces of 16 bytes in a key
  static constexpr int kPiecesUp = kPieces == 12 ? 16 : kPieces == 24 ? 32 : kPieces;
  // An odd number of pieces, so that eight rows' pieces of one column lie in different banks.
  static constexpr int kRowBytes = (kPieces + 1) * 16;
  static constexpr int kWarpKeys = kDim <= 96 ? 32 : 16;  // in a slot of one warp
  static constexpr int kWarpSlots = kDim <= 64 ? 4 : kDim == 128 ? 5 : 3;
  static constexpr int kWarpBytes = kWarpSlots * kWarpKeys * kRowBytes;
  static constexpr int kBytes = kTileWarps * kWarpBytes;
  static constexpr int kBlockKeys = kPagePositions;  // in a slot of all warps
  static constexpr int kBlockSlots = Min(4, kBytes / (kBlockKeys * kRowBytes));
  static_assert(kPieces % 2 == 0 && kBlockSlots >= 3 && kWarpLanes % kPiecesUp == 0);
  // The limit of a block on GPUs of compute capability 8.6, 8.9 and 12; others allow more.
  static_assert(kBytes <= 99 << 10);
};

/// One item's rows of queries [base, base + 16 * kWarps) with one key-value head.
template <typename T, int kDim, int kWarps>
struct Tile {
  using Shape = TileShape<kDim>;
  static constexpr int kKeys = kWarps == 1 ? Shape::kWarpKeys : Shape::kBlockKeys;
  static constexpr int kSlots = kWarps == 1 ? Shape::kWarpSlots : Shape::kBlockSlots;
  static constexpr int kParts = kPagePositions / kKeys;  // slots of a page's keys
  static constexpr int kSlotBytes = kKeys * Shape::kRowBytes;
  static constexpr bool kKeepQueries = kDim <= 128;  // otherwise registers do not suffice

  const AttendView& view;
  const AttendItem item;
  const int kv_head;
  char* const slots;
  const int lane, thread;  // number in the warp, number in all its warps
  bool busy;               // the warp has rows
  // The lane's two rows, lane / 4 and 8 more; a row that does not exist sees nothing.
  int row[2], head[2], position[2], hidden[2];
  const T* query[2];
  int first_page, end_page, end;  // the keys that any row sees
  unsigned long long page_at;     // lane i: the address of the chunk's page i

  uint32_t queries[kKeepQueries ? kDim / 16 : 1][4];
  float scores[kPagePositions / 8][4];
  float sums[kDim / 8][4];
  float top[2], total[2];

  __device__ __forceinline__ Tile(const AttendView& view, const AttendItem& item, int kv_head,
                                  int base, char* slots)
      : view(view),
        item(item),
        kv_head(kv_head),
        slots(slots),
        lane(static_cast<int>(threadIdx.x) % kWarpLanes),
        thread(static_cast<int>(threadIdx.x) % (kWarps * kWarpLanes)) {
    FindRows(base + thread / kWarpLanes * 16);
    FindKeys();
  }

  __device__ __forceinline__ void FindRows(int first) {
    const int count = item.count * view.group;
    busy = first < count;
    EVALD_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int index = first + lane / 4 + 8 * half;
      const int head_of_group = index % view.group;
      row[half] = index < count ? item.first + index / view.group : -1;
      head[half] = kv_head * view.group + head_of_group;
      position[half] = row[half] < 0 ? -1 : view.positions[row[half]];
      hidden[half] = view.Hidden(position[half]);
      query[half] = row[half] < 0 ? nullptr
                                  : static_cast<const T*>(view.qkv) +
                                        view.QueryAt(row[half], kv_head, head_of_group);
    }
  }

  __device__ __forceinline__ void FindKeys() {
    int low = INT32_MAX, high = 0;
    for (int i = lane; i < item.count; i += kWarpLanes) {
      const int p = view.positions[item.first + i];
      low = Min(low, view.Hidden(p));
      high = Max(high, p + 1);
    }
    EVALD_UNROLL
    for (int step = 16; step > 0; step /= 2) {
      low = Min(low, __shfl_xor_sync(kWarpMask, low, step));
      high = Max(high, __shfl_xor_sync(kWarpMask, high, step));
    }
    const int chunk_page = item.chunk * static_cast<int>(kChunkPages);
    const int chunk_end_page = chunk_page + static_cast<int>(kChunkPages);
    end = Min(high, chunk_end_page * kPagePositions);
    first_page = Max(low / kPagePositions, chunk_page);
    end_page = DivideUp(end, kPagePositions);
    const int mine = chunk_page + lane;
    page_at = 0;
    if (mine >= first_page && mine < end_page) {
      page_at = reinterpret_cast<unsigned long long>(view.pages[item.table + mine]);
    }
  }

  static __device__ __forceinline__ void Sync() {
    if constexpr (kWarps == 1) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }

  __device__ __forceinline__ void Run() {
    Sync();  // nobody reads the old content of the slots any more
    EVALD_UNROLL
    for (int n = 0; n < kSlots - 1; ++n) Fill(n);
    Begin();
    int n = 0;
    EVALD_NO_UNROLL
    for (int page = first_page; page < end_page; ++page) {
      EVALD_UNROLL
      for (int part = 0; part < kParts; ++part) {
        const char* keys = NextSlot(n++);
        if (busy) Score(part, keys);
      }
      if (busy) Weigh(page);
      EVALD_UNROLL
      for (int part = 0; part < kParts; ++part) {
        const char* values = NextSlot(n++);
        if (busy) AddValues(part, values);
      }
    }
    if (busy) Store();
  }

  /// Starts to fill the tile's n-th slot. A page takes kParts slots for its keys, then kParts for
  /// its values.
  __device__ __forceinline__ void Fill(int n) {
    const int page = first_page + n / (2 * kParts);
    const int part = n % kParts;
    const bool values = n / kParts % 2 == 1;
    const int chunk_page = item.chunk * static_cast<int>(kChunkPages);
    const auto memory = __shfl_sync(kWarpMask, page_at, (page - chunk_page) % kWarpLanes);
    if (page < end_page) {
      const T* from = reinterpret_cast<const T*>(memory) +  // NOLINT(performance-no-int-to-ptr)
                      (values ? view.values_at : view.keys_at) + kv_head * view.kv_head_stride +
                      static_cast<int64_t>(part) * kKeys * view.head_dim;
      char* to = slots + n % kSlots * kSlotBytes;
      CopyRows(to, from, end - page * kPagePositions - part * kKeys);
    }
    CopyAsyncCommit();
  }

  /// Copies a slot's keys. Keys from the `written`-th on, and dimensions that a head does not have,
  /// become zero. A thread copies the same piece of each of its keys.
  __device__ __forceinline__ void CopyRows(char* to, const T* from, int written) const {
    constexpr int kAtOnce = kWarps * kWarpLanes / Shape::kPiecesUp;  // keys
    const int key = thread / Shape::kPiecesUp, piece = thread % Shape::kPiecesUp;
    if (piece >= Shape::kPieces) return;
    const bool exists = piece * 8 < view.head_dim;
    const T* mine = from + (exists ? key * view.head_dim + piece * 8 : 0);
    char* target = to + key * Shape::kRowBytes + piece * 16;
    EVALD_UNROLL
    for (int i = 0; i < kKeys / kAtOnce; ++i) {
      const bool valid = exists && key + i * kAtOnce < written;
      CopyAsync16OrZero(target + i * kAtOnce * Shape::kRowBytes, valid ? mine : from, valid);
      mine += kAtOnce * view.head_dim;
    }
  }

  /// Waits for the n-th slot, and starts to refill the slot that was read last.
  __device__ __forceinline__ const char* NextSlot(int n) {
    CopyAsyncWait<kSlots - 2>();
    Sync();
    Fill(n + kSlots - 1);
    return slots + n % kSlots * kSlotBytes;
  }

  __device__ __forceinline__ void LoadQueries(int k, uint32_t (&a)[4]) const {
    EVALD_UNROLL
    for (int i = 0; i < 4; ++i) {
      const T* from = query[i % 2];
      const bool there = from != nullptr && k * 16 < view.head_dim;
      const int column = k * 16 + lane % 4 * 2 + i / 2 * 8;
      a[i] = there ? *reinterpret_cast<const uint32_t*>(from + column) : 0;
    }
  }

  __device__ __forceinline__ void Begin() {
    EVALD_UNROLL
    for (int half = 0; half < 2; ++half) {
      top[half] = -kInfinity;
      total[half] = 0;
    }
    EVALD_UNROLL
    for (int n = 0; n < kDim / 8; ++n) {
      EVALD_UNROLL
      for (int i = 0; i < 4; ++i) sums[n][i] = 0;
    }
    if constexpr (kKeepQueries) {
      EVALD_UNROLL
      for (int k = 0; k < kDim / 16; ++k) LoadQueries(k, queries[k]);
    }
  }

  /// scores = queries times the keys of one slot.
  __device__ __forceinline__ void Score(int part, const char* keys) {
    const int first = part * kKeys / 8;
    EVALD_UNROLL
    for (int n = 0; n < kKeys / 8; ++n) {
      EVALD_UNROLL
      for (int i = 0; i < 4; ++i) scores[first + n][i] = 0;
    }
    const char* mine = keys + (lane / 16 * 8 + lane % 8) * Shape::kRowBytes + lane / 8 % 2 * 16;
    EVALD_UNROLL
    for (int k = 0; k < kDim / 16; ++k) {
      uint32_t a[4];
      if constexpr (kKeepQueries) {
        EVALD_UNROLL
        for (int i = 0; i < 4; ++i) a[i] = queries[k][i];
      } else {
        LoadQueries(k, a);
      }
      EVALD_UNROLL
      for (int pair = 0; pair < kKeys / 16; ++pair) {
        uint32_t b[4];
        LoadMatrix4(b, mine + pair * 16 * Shape::kRowBytes + k * 32);
        const uint32_t left[2] = {b[0], b[1]}, right[2] = {b[2], b[3]};
        MmaM16N8K16<T>(scores[first + 2 * pair], a, left);
        MmaM16N8K16<T>(scores[first + 2 * pair + 1], a, right);
      }
    }
  }

  /// Turns the page's scores into weights; if there is a new top, totals and sums are scaled down.
  __device__ __forceinline__ void Weigh(int page) {
    float factor[2];
    bool changed = false;
    EVALD_UNROLL
    for (int half = 0; half < 2; ++half) {
      const float old = top[half];
      Hide(page * kPagePositions, half);
      EVALD_UNROLL
      for (int n = 0; n < kPagePositions / 8; ++n) {
        top[half] = fmaxf(top[half], fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
      }
      top[half] = fmaxf(top[half], __shfl_xor_sync(kWarpMask, top[half], 1));
      top[half] = fmaxf(top[half], __shfl_xor_sync(kWarpMask, top[half], 2));
      const float shift = Shift(top[half], view.scale);
      factor[half] = Factor(old, top[half], view.scale, shift);
      changed = changed || old != top[half];
      float sum = 0;
      EVALD_UNROLL
      for (int n = 0; n < kPagePositions / 8; ++n) {
        EVALD_UNROLL
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          scores[n][i] = Weight(scores[n][i], view.scale, shift);
          sum += scores[n][i];
        }
      }
      total[half] = fmaf(total[half], factor[half], sum);
    }
    if (__any_sync(kWarpMask, changed) == 0) return;  // all factors are one
    EVALD_UNROLL
    for (int n = 0; n < kDim / 8; ++n) {
      EVALD_UNROLL
      for (int i = 0; i < 4; ++i) sums[n][i] *= factor[i / 2];
    }
  }

  /// Sets the scores of keys that the row does not see to minus infinity.
  __device__ __forceinline__ void Hide(int first, int half) {
    if (hidden[half] <= first && position[half] >= first + kPagePositions - 1) return;
    EVALD_UNROLL
    for (int n = 0; n < kPagePositions / 8; ++n) {
      EVALD_UNROLL
      for (int i = 0; i < 2; ++i) {
        const int key = first + 8 * n + lane % 4 * 2 + i;
        if (key < hidden[half] || key > position[half]) scores[n][2 * half + i] = -kInfinity;
      }
    }
  }

  /// sums += weights times the values of one slot.
  __device__ __forceinline__ void AddValues(int part, const char* values) {
    const char* mine = values + (lane / 8 % 2 * 8 + lane % 8) * Shape::kRowBytes + lane / 16 * 16;
    EVALD_UNROLL
    for (int t = 0; t < kKeys / 16; ++t) {
      const int n = part * kKeys / 8 + 2 * t;
      const uint32_t a[4] = {Pack2<T>(scores[n][0], scores[n][1]),
                             Pack2<T>(scores[n][2], scores[n][3]),
                             Pack2<T>(scores[n + 1][0], scores[n + 1][1]),
                             Pack2<T>(scores[n + 1][2], scores[n + 1][3])};
      EVALD_UNROLL
      for (int pair = 0; pair < kDim / 16; ++pair) {
        uint32_t b[4];
        LoadMatrix4Transposed(b, mine + t * 16 * Shape::kRowBytes + pair * 32);
        const uint32_t left[2] = {b[0], b[1]}, right[2] = {b[2], b[3]};
        MmaM16N8K16<T>(sums[2 * pair], a, left);
        MmaM16N8K16<T>(sums[2 * pair + 1], a, right);
      }
    }
  }

  __device__ __forceinline__ void Store() {
    EVALD_UNROLL
    for (int half = 0; half < 2; ++half) {
      total[half] += __shfl_xor_sync(kWarpMask, total[half], 1);
      total[half] += __shfl_xor_sync(kWarpMask, total[half], 2);
    }
    EVALD_UNROLL
    for (int half = 0; half < 2; ++half) {
      if (row[half] < 0) continue;
      if (view.OneChunk(row[half])) {
        StoreOut(half);
      } else {
        StorePartial(half);
      }
    }
  }

  __device__ __forceinline__ void StoreOut(int half) const {
    T* out = static_cast<T*>(view.out) + view.OutAt(row[half], head[half]) + lane % 4 * 2;
    const float share = 1.0f / total[half];
    EVALD_UNROLL
    for (int n = 0; n < kDim / 8; ++n) {
      if (n * 8 < view.head_dim) {
        *reinterpret_cast<uint32_t*>(out + n * 8) =
            Pack2<T>(sums[n][2 * half] * share, sums[n][2 * half + 1] * share);
      }
    }
  }

  __device__ __forceinline__ void StorePartial(int half) const {
    struct alignas(8) Pair {
      float first, second;
    };
    float* out = view.PartialOf(row[half], head[half], item.chunk);
    EVALD_UNROLL
    for (int n = 0; n < kDim / 8; ++n) {
      if (n * 8 < view.head_dim) {
        *reinterpret_cast<Pair*>(out + n * 8 + lane % 4 * 2) = {sums[n][2 * half],
                                                                sums[n][2 * half + 1]};
      }
    }
    if (lane % 4 == 0) *reinterpret_cast<Pair*>(out + view.head_dim) = {top[half], total[half]};
  }
};

/// Each block takes units (item and key-value head) in steps of the grid: first those of many rows,
/// with all its warps; then those of few rows, each warp by itself.
template <typename T, int kDim>
__global__ void __launch_bounds__(kTileWarps* kWarpLanes, 2) AttendTiles(const AttendView view) {
  EVALD_DYNAMIC_SHARED(shared);
  const int units = view.items_count * view.kv_heads;
  const int blocks = static_cast<int>(gridDim.x), block = static_cast<int>(blockIdx.x);
  for (int unit = block; unit < units; unit += blocks) {
    const AttendItem item = view.items[unit / view.kv_heads];
    const int rows = item.count * view.group;
    if (rows <= kNarrowRows) break;  // items of few rows follow
    for (int base = 0; base < rows; base += static_cast<int>(kWideRows)) {
      Tile<T, kDim, kTileWarps>(view, item, unit % view.kv_heads, base, shared).Run();
    }
  }
  __syncthreads();
  const int warp = static_cast<int>(threadIdx.x) / kWarpLanes;
  char* slots = shared + warp * TileShape<kDim>::kWarpBytes;
  for (int unit = warp * blocks + block; unit < units; unit += kTileWarps * blocks) {
    const AttendItem item = view.items[unit / view.kv_heads];
    if (item.count == 0) break;  // only padding follows
    if (item.count * view.group > kNarrowRows) continue;
    Tile<T, kDim, 1>(view, item, unit % view.kv_heads, 0, slots).Run();
  }
}

template <typename T, int kDim>
void QueueTilesOf(const AttendView& view, const Stream& stream) {
  constexpr int kThreads = kTileWarps * kWarpLanes;
  constexpr int kBytes = TileShape<kDim>::kBytes;
  const int at_once = BlocksAtOnce("AttendTiles", AttendTiles<T, kDim>, kThreads, kBytes);
  const int blocks = Min(view.items_count * view.kv_heads, at_once);
  EVALD_LAUNCH((AttendTiles<T, kDim>), static_cast<unsigned>(blocks),
               static_cast<unsigned>(kThreads), kBytes, stream, view);
}

/// Queues the kernel with the smallest kDim that has room for a head.
template <typename T>
void QueueTiles(const AttendView& view, const Stream& stream) {
  if (view.head_dim <= 32) return QueueTilesOf<T, 32>(view, stream);
  if (view.head_dim <= 64) return QueueTilesOf<T, 64>(view, stream);
  if (view.head_dim <= 96) return QueueTilesOf<T, 96>(view, stream);
  if (view.head_dim <= 128) return QueueTilesOf<T, 128>(view, stream);
  if (view.head_dim <= 192) return QueueTilesOf<T, 192>(view, stream);
  QueueTilesOf<T, 256>(view, stream);
}

}  // namespace evald::native::cuda
