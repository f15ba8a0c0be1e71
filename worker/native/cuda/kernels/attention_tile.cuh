#pragma once

#include "worker/native/cuda/kernels/attention_args.cuh"

/// Attention by tensor cores, as in FlashAttention-2 (Dao 2023). The scores of a page's keys, their
/// weights against the top so far, and the values' weighted sums stay in a warp's registers.
///
/// A warp has one or two tiles of 16 rows of queries (batch row and head of the group) and goes
/// through the pages of a chunk in order. With few rows it works alone, with keys and values of its
/// own. If an item has more rows, four warps work beside each other and read keys and values
/// together; with two tiles a warp uses each matrix that it loads twice. All run the same code on
/// their rows, so a row's bits do not depend on its neighbours. A page that a row does not see
/// leaves its sums unchanged: weights are zero and the top stays.
///
/// (That is why stored values are finite: see Device::StoreKeysAndValues.)
namespace evald::native::cuda {

inline constexpr int kTileWarps = 4;
inline constexpr int kTileRows = 16;  // of queries

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
  static constexpr int kTilesMax = kDim <= 128 ? 2 : 1;  // of a warp; more need too many registers
  // Two tiles of queries take too many registers too: they lie in shared memory, behind the slots.
  static constexpr int kWarpQueryBytes = 2 * kTileRows * kRowBytes;
  static constexpr int BlockSlots(int tiles) {
    const int queries = tiles == 2 ? kTileWarps * kWarpQueryBytes : 0;
    return Min(4, (kBytes - queries) / (kBlockKeys * kRowBytes));
  }
  static_assert(kPieces % 2 == 0 && BlockSlots(kTilesMax) >= 3 && kWarpLanes % kPiecesUp == 0);
  // The limit of a block on GPUs of compute capability 8.6, 8.9 and 12; others allow more.
  static_assert(kBytes <= 99 << 10);
};

/// One item's rows of queries [base, base + kTileRows * kTiles * kWarps) with one key-value head.
/// With one warp, `kShare` is the number of warps' shared memory that the warp has.
template <typename T, int kDim, int kWarps, int kTiles, int kShare = 1>
struct Tile {
  using Shape = TileShape<kDim>;
  static constexpr int kKeys = kWarps == 1 ? Shape::kWarpKeys : Shape::kBlockKeys;
  static constexpr int kSlots =
      kWarps == 1 ? Shape::kWarpSlots * kShare : Shape::BlockSlots(kTiles);
  static constexpr int kParts = kPagePositions / kKeys;  // slots of a page's keys
  static constexpr int kSlotBytes = kKeys * Shape::kRowBytes;
  static constexpr int kHalves = 2 * kTiles;
  // In registers, if these suffice; queries of two tiles are in shared memory.
  static constexpr bool kKeepQueries = kDim <= 128 && kTiles == 1;

  const AttendView& view;
  const AttendItem item;
  const int kv_head;
  char* const slots;
  const int lane, thread;  // number in the warp, number in all its warps
  const int first;         // the warp's first row of queries in the item
  bool busy;               // the warp has rows
  // Of the lane's rows, lane / 4 of each 8; a row that does not exist has -1 and sees nothing.
  int position[kHalves];
  const T* query[2];  // of the rows of one tile
  int first_page, end_page, end;  // the keys that any row sees
  unsigned long long page_at;     // lane i: the address of the chunk's page i

  uint32_t queries[kKeepQueries ? kDim / 16 : 1][4];
  float scores[kTiles][kPagePositions / 8][4];
  float sums[kTiles][kDim / 8][4];
  float top[kHalves], total[kHalves];

  __device__ __forceinline__ Tile(const AttendView& view, const AttendItem& item, int kv_head,
                                  int base, char* slots)
      : view(view),
        item(item),
        kv_head(kv_head),
        slots(slots),
        lane(static_cast<int>(threadIdx.x) % kWarpLanes),
        thread(static_cast<int>(threadIdx.x) % (kWarps * kWarpLanes)),
        first(base + thread / kWarpLanes * kTileRows * kTiles) {
    busy = first < item.count * view.group;
    EVALD_UNROLL
    for (int half = 0; half < kHalves; ++half) {
      const int row = RowOf(IndexOf(half));
      position[half] = row < 0 ? -1 : view.positions[row];
      if constexpr (kTiles == 1) query[half] = QueryOf(IndexOf(half));
    }
    FindKeys();
  }

  /// The number in the item of the lane's row in eight rows.
  __device__ __forceinline__ int IndexOf(int half) const { return first + lane / 4 + 8 * half; }
  /// The batch's row of a row of queries; -1 if the item has no such row.
  __device__ __forceinline__ int RowOf(int index) const {
    return index < item.count * view.group ? item.first + index / view.group : -1;
  }
  /// null if the item has no such row.
  __device__ __forceinline__ const T* QueryOf(int index) const {
    const int row = RowOf(index);
    if (row < 0) return nullptr;
    return static_cast<const T*>(view.qkv) + view.QueryAt(row, kv_head, index % view.group);
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
    if constexpr (kTiles == 2) CopyQueries();  // the first slot's wait covers them
    EVALD_NO_UNROLL
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

  /// The warp's queries in shared memory.
  __device__ __forceinline__ char* SharedQueries() const {
    return slots + kSlots * kSlotBytes + thread / kWarpLanes * Shape::kWarpQueryBytes;
  }

  /// Starts to copy the warp's queries to shared memory. Rows and dimensions that do not exist
  /// become zero.
  __device__ __forceinline__ void CopyQueries() const {
    static_assert(kTiles != 2 || kTiles * kTileRows == kWarpLanes);
    constexpr int kAtOnce = kWarpLanes / Shape::kPiecesUp;  // rows
    const int piece = lane % Shape::kPiecesUp;
    const auto mine = reinterpret_cast<unsigned long long>(QueryOf(first + lane));
    char* const to = SharedQueries() + piece * 16;
    EVALD_UNROLL
    for (int i = 0; i < kTiles * kTileRows / kAtOnce; ++i) {
      const int row = i * kAtOnce + lane / Shape::kPiecesUp;
      const auto at = __shfl_sync(kWarpMask, mine, row);
      if (piece >= Shape::kPieces) continue;
      const bool valid = at != 0 && piece * 8 < view.head_dim;
      const T* from = reinterpret_cast<const T*>(at) + piece * 8;  // NOLINT
      CopyAsync16OrZero(to + row * Shape::kRowBytes,
                        valid ? static_cast<const void*>(from) : view.qkv, valid);
    }
  }

  /// Dimensions [16 k, 16 k + 16) of a tile's queries, as a matrix for the tensor cores.
  __device__ __forceinline__ void LoadQueries(int tile, int k, uint32_t (&a)[4]) const {
    if constexpr (kTiles == 2) {
      const int row = tile * kTileRows + lane % 16;
      LoadMatrix4(a, SharedQueries() + row * Shape::kRowBytes + k * 32 + lane / 16 * 16);
    } else {
      EVALD_UNROLL
      for (int i = 0; i < 4; ++i) {
        const T* from = query[i % 2];
        const bool there = from != nullptr && k * 16 < view.head_dim;
        const int column = k * 16 + lane % 4 * 2 + i / 2 * 8;
        a[i] = there ? *reinterpret_cast<const uint32_t*>(from + column) : 0;
      }
    }
  }

  __device__ __forceinline__ void Begin() {
    EVALD_UNROLL
    for (int half = 0; half < kHalves; ++half) {
      top[half] = -kInfinity;
      total[half] = 0;
    }
    EVALD_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      EVALD_UNROLL
      for (int n = 0; n < kDim / 8; ++n) {
        EVALD_UNROLL
        for (int i = 0; i < 4; ++i) sums[tile][n][i] = 0;
      }
    }
    if constexpr (kKeepQueries) {
      EVALD_UNROLL
      for (int k = 0; k < kDim / 16; ++k) LoadQueries(0, k, queries[k]);
    }
  }

  /// scores = queries times the keys of one slot.
  __device__ __forceinline__ void Score(int part, const char* keys) {
    const int begin = part * kKeys / 8;
    EVALD_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      EVALD_UNROLL
      for (int n = 0; n < kKeys / 8; ++n) {
        EVALD_UNROLL
        for (int i = 0; i < 4; ++i) scores[tile][begin + n][i] = 0;
      }
    }
    const char* mine = keys + (lane / 16 * 8 + lane % 8) * Shape::kRowBytes + lane / 8 % 2 * 16;
    EVALD_UNROLL
    for (int k = 0; k < kDim / 16; ++k) {
      uint32_t a[kTiles][4];
      EVALD_UNROLL
      for (int tile = 0; tile < kTiles; ++tile) {
        if constexpr (kKeepQueries) {
          EVALD_UNROLL
          for (int i = 0; i < 4; ++i) a[tile][i] = queries[k][i];
        } else {
          LoadQueries(tile, k, a[tile]);
        }
      }
      EVALD_UNROLL
      for (int pair = 0; pair < kKeys / 16; ++pair) {
        uint32_t b[4];
        LoadMatrix4(b, mine + pair * 16 * Shape::kRowBytes + k * 32);
        const uint32_t left[2] = {b[0], b[1]}, right[2] = {b[2], b[3]};
        EVALD_UNROLL
        for (int tile = 0; tile < kTiles; ++tile) {
          MmaM16N8K16<T>(scores[tile][begin + 2 * pair], a[tile], left);
          MmaM16N8K16<T>(scores[tile][begin + 2 * pair + 1], a[tile], right);
        }
      }
    }
  }

  /// Turns the page's scores into weights; if there is a new top, totals and sums are scaled down.
  __device__ __forceinline__ void Weigh(int page) {
    EVALD_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) WeighTile(page, tile);
  }

  __device__ __forceinline__ void WeighTile(int page, int tile) {
    float factor[2];
    bool changed = false;
    EVALD_UNROLL
    for (int side = 0; side < 2; ++side) {
      const int half = 2 * tile + side;
      const float old = top[half];
      Hide(page * kPagePositions, tile, side);
      EVALD_UNROLL
      for (int n = 0; n < kPagePositions / 8; ++n) {
        top[half] =
            fmaxf(top[half], fmaxf(scores[tile][n][2 * side], scores[tile][n][2 * side + 1]));
      }
      top[half] = fmaxf(top[half], __shfl_xor_sync(kWarpMask, top[half], 1));
      top[half] = fmaxf(top[half], __shfl_xor_sync(kWarpMask, top[half], 2));
      const float shift = Shift(top[half], view.scale);
      factor[side] = Factor(old, top[half], view.scale, shift);
      changed = changed || old != top[half];
      float sum = 0;
      EVALD_UNROLL
      for (int n = 0; n < kPagePositions / 8; ++n) {
        EVALD_UNROLL
        for (int i = 2 * side; i < 2 * side + 2; ++i) {
          scores[tile][n][i] = Weight(scores[tile][n][i], view.scale, shift);
          sum += scores[tile][n][i];
        }
      }
      total[half] = fmaf(total[half], factor[side], sum);
    }
    if (__any_sync(kWarpMask, changed) == 0) return;  // all factors are one
    EVALD_UNROLL
    for (int n = 0; n < kDim / 8; ++n) {
      EVALD_UNROLL
      for (int i = 0; i < 4; ++i) sums[tile][n][i] *= factor[i / 2];
    }
  }

  /// Sets the scores of keys that the row does not see to minus infinity.
  __device__ __forceinline__ void Hide(int first_key, int tile, int side) {
    const int last_seen = position[2 * tile + side], hidden = view.Hidden(last_seen);
    if (hidden <= first_key && last_seen >= first_key + kPagePositions - 1) return;
    EVALD_UNROLL
    for (int n = 0; n < kPagePositions / 8; ++n) {
      EVALD_UNROLL
      for (int i = 0; i < 2; ++i) {
        const int key = first_key + 8 * n + lane % 4 * 2 + i;
        if (key < hidden || key > last_seen) scores[tile][n][2 * side + i] = -kInfinity;
      }
    }
  }

  /// sums += weights times the values of one slot.
  __device__ __forceinline__ void AddValues(int part, const char* values) {
    const char* mine = values + (lane / 8 % 2 * 8 + lane % 8) * Shape::kRowBytes + lane / 16 * 16;
    EVALD_UNROLL
    for (int t = 0; t < kKeys / 16; ++t) {
      const int n = part * kKeys / 8 + 2 * t;
      uint32_t a[kTiles][4];
      EVALD_UNROLL
      for (int tile = 0; tile < kTiles; ++tile) {
        EVALD_UNROLL
        for (int i = 0; i < 4; ++i) {
          const float* two = &scores[tile][n + i / 2][i % 2 * 2];
          a[tile][i] = Pack2<T>(two[0], two[1]);
        }
      }
      EVALD_UNROLL
      for (int pair = 0; pair < kDim / 16; ++pair) {
        uint32_t b[4];
        LoadMatrix4Transposed(b, mine + t * 16 * Shape::kRowBytes + pair * 32);
        const uint32_t left[2] = {b[0], b[1]}, right[2] = {b[2], b[3]};
        EVALD_UNROLL
        for (int tile = 0; tile < kTiles; ++tile) {
          MmaM16N8K16<T>(sums[tile][2 * pair], a[tile], left);
          MmaM16N8K16<T>(sums[tile][2 * pair + 1], a[tile], right);
        }
      }
    }
  }

  __device__ __forceinline__ void Store() {
    EVALD_UNROLL
    for (int half = 0; half < kHalves; ++half) {
      total[half] += __shfl_xor_sync(kWarpMask, total[half], 1);
      total[half] += __shfl_xor_sync(kWarpMask, total[half], 2);
    }
    EVALD_UNROLL
    for (int half = 0; half < kHalves; ++half) {
      const int index = IndexOf(half), row = RowOf(index);
      if (row < 0) continue;
      const int head = kv_head * view.group + index % view.group;
      if (view.OneChunk(row)) {
        StoreOut(half, row, head);
      } else {
        StorePartial(half, row, head);
      }
    }
  }

  __device__ __forceinline__ void StoreOut(int half, int row, int head) const {
    T* out = static_cast<T*>(view.out) + view.OutAt(row, head) + lane % 4 * 2;
    const float share = 1.0f / total[half];
    EVALD_UNROLL
    for (int n = 0; n < kDim / 8; ++n) {
      const float* two = &sums[half / 2][n][half % 2 * 2];
      if (n * 8 < view.head_dim) {
        *reinterpret_cast<uint32_t*>(out + n * 8) = Pack2<T>(two[0] * share, two[1] * share);
      }
    }
  }

  __device__ __forceinline__ void StorePartial(int half, int row, int head) const {
    struct alignas(8) Pair {
      float first, second;
    };
    float* out = view.PartialOf(row, head, item.chunk);
    EVALD_UNROLL
    for (int n = 0; n < kDim / 8; ++n) {
      const float* two = &sums[half / 2][n][half % 2 * 2];
      if (n * 8 < view.head_dim) {
        *reinterpret_cast<Pair*>(out + n * 8 + lane % 4 * 2) = {two[0], two[1]};
      }
    }
    if (lane % 4 == 0) *reinterpret_cast<Pair*>(out + view.head_dim) = {top[half], total[half]};
  }
};

/// All rows of an item, by all warps of a block.
template <typename T, int kDim>
__device__ __forceinline__ void AttendWide(const AttendView& view, const AttendItem& item,
                                           int kv_head, char* shared) {
  const int rows = item.count * view.group;
  for (int base = 0; base < rows;) {
    if constexpr (TileShape<kDim>::kTilesMax == 2) {
      if (rows - base > kTileWarps * kTileRows) {
        Tile<T, kDim, kTileWarps, 2>(view, item, kv_head, base, shared).Run();
        base += 2 * kTileWarps * kTileRows;
        continue;
      }
    }
    Tile<T, kDim, kTileWarps, 1>(view, item, kv_head, base, shared).Run();
    base += kTileWarps * kTileRows;
  }
}

/// Whether each block has one unit at most, padding left out.
__device__ __forceinline__ bool AreFew(const AttendView& view, int units, int blocks) {
  return units <= blocks || view.items[blocks / view.kv_heads].count == 0;
}

/// Each block takes units (item and key-value head) in steps of the grid: first those of many rows,
/// with all its warps; then those of few rows, each warp by itself. If there are so few units that
/// a block has one, its first warp has all of the block's shared memory: it reads far ahead, since
/// the time of such a batch is the time in which memory answers.
template <typename T, int kDim>
__global__ void __launch_bounds__(kTileWarps* kWarpLanes, 2) AttendTiles(const AttendView view) {
  EVALD_DYNAMIC_SHARED(shared);
  const int units = view.items_count * view.kv_heads;
  const int blocks = static_cast<int>(gridDim.x), block = static_cast<int>(blockIdx.x);
  for (int unit = block; unit < units; unit += blocks) {
    const AttendItem item = view.items[unit / view.kv_heads];
    if (item.count * view.group <= kNarrowRows) break;  // items of few rows follow
    AttendWide<T, kDim>(view, item, unit % view.kv_heads, shared);
  }
  __syncthreads();
  const int warp = static_cast<int>(threadIdx.x) / kWarpLanes;
  if (AreFew(view, units, blocks)) {
    if (warp > 0 || block >= units) return;
    const AttendItem item = view.items[block / view.kv_heads];
    if (item.count == 0 || item.count * view.group > kNarrowRows) return;
    Tile<T, kDim, 1, 1, kTileWarps>(view, item, block % view.kv_heads, 0, shared).Run();
    return;
  }
  char* slots = shared + warp * TileShape<kDim>::kWarpBytes;
  for (int unit = warp * blocks + block; unit < units; unit += kTileWarps * blocks) {
    const AttendItem item = view.items[unit / view.kv_heads];
    if (item.count == 0) break;  // only padding follows
    if (item.count * view.group > kNarrowRows) continue;
    Tile<T, kDim, 1, 1>(view, item, unit % view.kv_heads, 0, slots).Run();
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
