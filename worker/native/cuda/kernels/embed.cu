#include "worker/native/cuda/kernels.h"
#include "worker/native/cuda/kernels/elements.cuh"

namespace evald::native::cuda {
namespace {

template <typename T, bool kWhole>
__global__ void EmbedKernel(EmbedArgs args) {
  const auto [row, i] = PlaceOfThread(args.width);
  if (i >= args.width) return;
  const int n = VectorSize<kWhole>(i, args.width);
  float values[kVector];
  const int32_t token = args.tokens[row];
  const int64_t known = token >= 0 ? token : args.answers[-1 - token].token;
  LoadVector<kWhole>(static_cast<const T*>(args.embedding) + known * args.width, i, n, values);
  StoreVector<kWhole>(args.out + row * args.width, i, n, values);
}

}  // namespace

void Embed(const EmbedArgs& args, const Stream& stream) {
  if (args.rows == 0) return;
  WithElement(args.type, [&]<typename T>() {
    const bool whole = WholeVectors(args.width, args.embedding, args.out);
    const auto embed = whole ? &EmbedKernel<T, true> : &EmbedKernel<T, false>;
    EVALD_LAUNCH(embed, StretchBlocks(args.rows, args.width), kThreads, 0, stream, args);
  });
}

}  // namespace evald::native::cuda
