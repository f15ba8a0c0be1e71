#include "worker/native/cuda/kernels/attention_tile.cuh"

namespace evald::native::cuda {

void AttendTilesBf16(const AttendView& view, const Stream& stream) {
  QueueTiles<BF16>(view, stream);
}

}  // namespace evald::native::cuda
