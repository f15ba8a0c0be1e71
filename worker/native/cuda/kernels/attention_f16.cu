#include "worker/native/cuda/kernels/attention_tile.cuh"

namespace evald::native::cuda {

void AttendTilesF16(const AttendView& view, const Stream& stream) { QueueTiles<F16>(view, stream); }

}  // namespace evald::native::cuda
