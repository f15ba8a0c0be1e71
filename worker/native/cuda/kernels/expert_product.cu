#include "worker/native/cuda/kernels/expert_tile.cuh"

namespace evald::native::cuda {
namespace {

template <typename T, int kRows, int kWarpsDown, int kWarpsAcross>
__global__ void __launch_bounds__(kWarpsDown* kWarpsAcross* kWarpLanes)
    ExpertTiles(ExpertProductArgs args) {
  using Tile = ExpertTile<T, kRows, kWarpsDown, kWarpsAcross>;
  EVALD_DYNAMIC_SHARED(shared);
  const auto across = static_cast<unsigned>(DivideUp<int64_t>(args.outputs, Tile::kColumns));
  const ExpertRows rows = FindExpertRows(args.begin, static_cast<int>(args.experts), kRows,
                                         static_cast<int>(blockIdx.x / across));
  if (rows.first == rows.end) return;
  Tile(args, rows, static_cast<int>(blockIdx.x % across) * Tile::kColumns, shared).Run();
}

template <typename T, int kRows, int kWarpsDown, int kWarpsAcross>
void QueueTiles(const ExpertProductArgs& args, const Stream& stream) {
  using Tile = ExpertTile<T, kRows, kWarpsDown, kWarpsAcross>;
  const int64_t blocks =
      ExpertTilesMax(args, kRows) * DivideUp<int64_t>(args.outputs, Tile::kColumns);
  EVALD_LAUNCH((ExpertTiles<T, kRows, kWarpsDown, kWarpsAcross>), static_cast<unsigned>(blocks),
               Tile::kThreadsOfTile, Tile::kBytes, stream, args);
}

// Larger tiles read less; smaller ones waste less on experts with few rows.
template <typename T>
void QueueTiles(const ExpertProductArgs& args, const Stream& stream) {
  const int64_t rows_of_expert = args.slots / args.experts;
  if (rows_of_expert < 24) return QueueTiles<T, 16, 1, 4>(args, stream);
  if (rows_of_expert < 96) return QueueTiles<T, 64, 2, 4>(args, stream);
  QueueTiles<T, 128, 2, 4>(args, stream);
}

constexpr int kPlain = 16;  // rows, outputs and depth of a tile; each number has a thread

// For fp32, which tensor cores would round, and for rows that are not whole pieces of 16 bytes.
template <typename T>
__global__ void __launch_bounds__(kPlain* kPlain) ExpertTilesPlain(ExpertProductArgs args) {
  __shared__ float x[kPlain][kPlain + 1], w[kPlain][kPlain + 1];
  const auto across = static_cast<unsigned>(DivideUp<int64_t>(args.outputs, kPlain));
  const ExpertRows rows = FindExpertRows(args.begin, static_cast<int>(args.experts), kPlain,
                                         static_cast<int>(blockIdx.x / across));
  if (rows.first == rows.end) return;
  const int i = static_cast<int>(threadIdx.x) % kPlain, j = static_cast<int>(threadIdx.x) / kPlain;
  const int64_t column = blockIdx.x % across * int64_t{kPlain};
  const int slot = rows.first + j;
  const bool has_row = slot < rows.end, has_output = column + j < args.outputs;
  const T* x_at = has_row ? RowOf<T>(args, slot) : nullptr;
  const T* w_at = WeightsOf<T>(args, rows.expert) + (has_output ? (column + j) * args.inputs : 0);
  float sum = 0;
  for (int64_t k = i; k - i < args.inputs; k += kPlain) {
    x[j][i] = has_row && k < args.inputs ? ToFloat(x_at[k]) : 0.0f;
    w[j][i] = has_output && k < args.inputs ? ToFloat(w_at[k]) : 0.0f;
    __syncthreads();
    EVALD_UNROLL
    for (int n = 0; n < kPlain; ++n) sum = fmaf(x[j][n], w[i][n], sum);
    __syncthreads();
  }
  if (!has_row || column + i >= args.outputs) return;
  const int64_t at = slot * args.outputs + column + i;
  if (args.y_type == WeightType::kF32) {
    static_cast<float*>(args.y)[at] = sum;
  } else {
    static_cast<T*>(args.y)[at] = From<T>(sum);
  }
}

template <typename T>
void QueuePlain(const ExpertProductArgs& args, const Stream& stream) {
  const int64_t blocks = ExpertTilesMax(args, kPlain) * DivideUp<int64_t>(args.outputs, kPlain);
  EVALD_LAUNCH((ExpertTilesPlain<T>), static_cast<unsigned>(blocks), kPlain * kPlain, 0, stream,
               args);
}

}  // namespace

void MultiplyExperts(const ExpertProductArgs& args, const Stream& stream) {
  if (args.slots == 0) return;
  WithElement(args.type, [&]<typename T>() {
    if constexpr (sizeof(T) == 2) {
      const bool whole = args.inputs % 8 == 0 && args.weights_stride % 16 == 0 &&
                         reinterpret_cast<uintptr_t>(args.x) % 16 == 0 &&
                         reinterpret_cast<uintptr_t>(args.weights) % 16 == 0;
      if (whole) return QueueTiles<T>(args, stream);
    }
    QueuePlain<T>(args, stream);
  });
}

}  // namespace evald::native::cuda
