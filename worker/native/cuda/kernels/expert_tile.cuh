#pragma once

#include "worker/native/cuda/kernels.h"
#include "worker/native/cuda/kernels/reduce.cuh"

/// A tile of the products of all experts: some rows of one expert times some of its outputs. The
/// grid has as many blocks as there can be tiles, since only the device knows how many rows each
/// expert has. Surplus blocks find nothing to do.
///
/// Each number is a sum over the inner dimension in ascending steps of 16, in one accumulator,
/// whatever the tile's size and place: the same bits in every batch.
namespace evald::native::cuda {

/// Rows [first, end) of slots, all of one expert; empty if there is no such tile.
struct ExpertRows {
  int expert = 0, first = 0, end = 0;
};

/// The most tiles of `tile_rows` rows that the slots can have.
inline int64_t ExpertTilesMax(const ExpertProductArgs& args, int64_t tile_rows) {
  return args.slots / tile_rows + Min(args.experts, args.slots);
}

/// The `tile`-th tile, counted over the experts in order. All lanes of a warp must call it, and all
/// get the result.
__device__ __forceinline__ ExpertRows FindExpertRows(const int32_t* begin, int experts,
                                                     int tile_rows, int tile) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  for (int base = 0; base < experts; base += kWarpLanes) {
    const int expert = base + lane;
    const bool exists = expert < experts;
    const int first = exists ? begin[expert] : 0, end = exists ? begin[expert + 1] : 0;
    const int tiles = DivideUp(end - first, tile_rows);
    const int through = WarpPrefix(tiles);  // of this expert and all before it
    const uint32_t beyond = __ballot_sync(kWarpMask, tile < through);
    if (beyond != 0) {
      const int found = __ffs(static_cast<int>(beyond)) - 1;
      const int at = first + (tile - through + tiles) * tile_rows;
      return {base + found, __shfl_sync(kWarpMask, at, found),
              __shfl_sync(kWarpMask, Min(end, at + tile_rows), found)};
    }
    tile -= __shfl_sync(kWarpMask, through, kWarpLanes - 1);
  }
  return {};
}

/// The row of x for a slot, and the weights of an expert.
template <typename T>
__device__ __forceinline__ const T* RowOf(const ExpertProductArgs& args, int slot) {
  const int64_t row = args.row == nullptr ? slot : args.row[slot];
  return static_cast<const T*>(args.x) + row * args.inputs;
}
template <typename T>
__device__ __forceinline__ const T* WeightsOf(const ExpertProductArgs& args, int expert) {
  return reinterpret_cast<const T*>(static_cast<const char*>(args.weights) +
                                    expert * args.weights_stride);
}

/// A tile by tensor cores: kRows rows times kColumns outputs, by kWarpsDown * kWarpsAcross warps.
/// Inputs pass through shared memory in slots of kDepth elements of each row, which are filled
/// asynchronously in turn. A row's pieces of 16 bytes are permuted by its number, so that eight
/// rows' pieces of one column lie in different banks.
template <typename T, int kRows, int kWarpsDown, int kWarpsAcross>
struct ExpertTile {
  static constexpr int kColumns = 128, kDepth = 64;
  static constexpr int kPieces = kDepth / 8;
  static constexpr int kRowBytes = kDepth * 2;
  static constexpr int kThreadsOfTile = kWarpsDown * kWarpsAcross * kWarpLanes;
  static constexpr int kSlots = kRows >= 128 ? 3 : 4;
  static constexpr int kSlotBytes = (kRows + kColumns) * kRowBytes;
  static constexpr int kBytes = kSlots * kSlotBytes;
  static constexpr int kAtOnce = kThreadsOfTile / kPieces;  // rows copied at the same time
  static constexpr int kRowCopies = kRows / kAtOnce, kColumnCopies = kColumns / kAtOnce;
  static constexpr int kDown = kRows / kWarpsDown / 16;        // of a warp, 16 rows each
  static constexpr int kAcross = kColumns / kWarpsAcross / 8;  // of a warp, 8 outputs each
  static_assert(kRowCopies * kAtOnce == kRows && kColumnCopies * kAtOnce == kColumns);
  static_assert(kAcross % 2 == 0 && kBytes <= 99 << 10);

  const ExpertProductArgs& args;
  const ExpertRows rows;
  const int column;  // the first of the tile
  char* const shared;
  const int lane, warp_row, warp_column;
  int piece, row_of_slot;  // that this thread copies
  const T* x_at[kRowCopies];
  const T* w_at[kColumnCopies];
  uint32_t x_exists = 0, w_exists = 0;  // a bit for each copy
  float sums[kDown][kAcross][4];

  __device__ __forceinline__ ExpertTile(const ExpertProductArgs& args, const ExpertRows& rows,
                                        int column, char* shared)
      : args(args),
        rows(rows),
        column(column),
        shared(shared),
        lane(static_cast<int>(threadIdx.x) % kWarpLanes),
        warp_row(static_cast<int>(threadIdx.x) / kWarpLanes / kWarpsAcross * (kDown * 16)),
        warp_column(static_cast<int>(threadIdx.x) / kWarpLanes % kWarpsAcross * (kAcross * 8)),
        piece(static_cast<int>(threadIdx.x) % kPieces),
        row_of_slot(static_cast<int>(threadIdx.x) / kPieces) {
    const T* w = WeightsOf<T>(args, rows.expert);
    EVALD_UNROLL
    for (int i = 0; i < kRowCopies; ++i) {
      const int slot = rows.first + row_of_slot + i * kAtOnce;
      const bool exists = slot < rows.end;
      x_at[i] = exists ? RowOf<T>(args, slot) : static_cast<const T*>(args.x);
      x_exists |= exists ? 1u << i : 0u;
    }
    EVALD_UNROLL
    for (int i = 0; i < kColumnCopies; ++i) {
      const int64_t output = column + row_of_slot + i * kAtOnce;
      const bool exists = output < args.outputs;
      w_at[i] = w + (exists ? output * args.inputs : 0);
      w_exists |= exists ? 1u << i : 0u;
    }
  }

  __device__ __forceinline__ void Run() {
    EVALD_UNROLL
    for (int m = 0; m < kDown; ++m) {
      EVALD_UNROLL
      for (int n = 0; n < kAcross; ++n) {
        EVALD_UNROLL
        for (int i = 0; i < 4; ++i) sums[m][n][i] = 0;
      }
    }
    const int steps = static_cast<int>(DivideUp<int64_t>(args.inputs, kDepth));
    EVALD_UNROLL
    for (int n = 0; n < kSlots - 1; ++n) Fill(n);
    EVALD_NO_UNROLL
    for (int n = 0; n < steps; ++n) {
      CopyAsyncWait<kSlots - 2>();
      __syncthreads();
      Fill(n + kSlots - 1);
      AddSlot(shared + n % kSlots * kSlotBytes);
    }
    Store();
  }

  /// Starts to fill the n-th slot; rows and elements that do not exist become zero.
  __device__ __forceinline__ void Fill(int n) {
    const int64_t element = int64_t{n} * kDepth + piece * 8;
    char* to = shared + n % kSlots * kSlotBytes + row_of_slot * kRowBytes;
    to += (piece ^ (row_of_slot % kPieces)) * 16;
    if (int64_t{n} * kDepth < args.inputs) {
      const bool within = element < args.inputs;
      EVALD_UNROLL
      for (int i = 0; i < kRowCopies; ++i) {
        const bool valid = within && (x_exists >> i & 1) != 0;
        CopyAsync16OrZero(to + i * kAtOnce * kRowBytes, valid ? x_at[i] + element : x_at[i], valid);
      }
      to += kRows * kRowBytes;
      EVALD_UNROLL
      for (int i = 0; i < kColumnCopies; ++i) {
        const bool valid = within && (w_exists >> i & 1) != 0;
        CopyAsync16OrZero(to + i * kAtOnce * kRowBytes, valid ? w_at[i] + element : w_at[i], valid);
      }
    }
    CopyAsyncCommit();
  }

  __device__ __forceinline__ void AddSlot(const char* slot) {
    const char* x = slot + (warp_row + lane % 16) * kRowBytes;
    const char* w = slot + (kRows + warp_column + lane / 16 * 8 + lane % 8) * kRowBytes;
    EVALD_UNROLL
    for (int k = 0; k < kDepth / 16; ++k) {
      uint32_t a[kDown][4];
      EVALD_UNROLL
      for (int m = 0; m < kDown; ++m) {
        LoadMatrix4(a[m], x + m * 16 * kRowBytes + ((2 * k + lane / 16) ^ (lane % 8)) * 16);
      }
      EVALD_UNROLL
      for (int pair = 0; pair < kAcross / 2; ++pair) {
        uint32_t b[4];
        LoadMatrix4(b, w + pair * 16 * kRowBytes + ((2 * k + lane / 8 % 2) ^ (lane % 8)) * 16);
        const uint32_t left[2] = {b[0], b[1]}, right[2] = {b[2], b[3]};
        EVALD_UNROLL
        for (int m = 0; m < kDown; ++m) {
          MmaM16N8K16<T>(sums[m][2 * pair], a[m], left);
          MmaM16N8K16<T>(sums[m][2 * pair + 1], a[m], right);
        }
      }
    }
  }

  __device__ __forceinline__ void Store() {
    EVALD_UNROLL
    for (int m = 0; m < kDown; ++m) {
      EVALD_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int slot = rows.first + warp_row + m * 16 + half * 8 + lane / 4;
        if (slot >= rows.end) continue;
        EVALD_UNROLL
        for (int n = 0; n < kAcross; ++n) {
          const int64_t output = column + warp_column + n * 8 + lane % 4 * 2;
          StorePair(slot * args.outputs + output, output, sums[m][n][2 * half],
                    sums[m][n][2 * half + 1]);
        }
      }
    }
  }

  __device__ __forceinline__ void StorePair(int64_t at, int64_t output, float left,
                                            float right) const {
    if (args.y_type == WeightType::kF32) {
      float* y = static_cast<float*>(args.y) + at;
      if (output < args.outputs) y[0] = left;
      if (output + 1 < args.outputs) y[1] = right;
    } else if (args.outputs % 2 == 0) {
      if (output < args.outputs) {
        *reinterpret_cast<uint32_t*>(static_cast<T*>(args.y) + at) = Pack2<T>(left, right);
      }
    } else {
      T* y = static_cast<T*>(args.y) + at;
      if (output < args.outputs) y[0] = From<T>(left);
      if (output + 1 < args.outputs) y[1] = From<T>(right);
    }
  }
};

}  // namespace evald::native::cuda
