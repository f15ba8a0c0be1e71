#include <algorithm>

#include "worker/native/cuda/kernels.h"
#include "worker/native/cuda/kernels/elements.cuh"
#include "worker/native/cuda/kernels/reduce.cuh"

namespace evald::native::cuda {
namespace {

constexpr int kThreadsMax = 512;
constexpr int kHeldMax = 4;  // vectors of a row that a thread keeps in registers

// The calling thread's vectors of a row of x, after the addend was added: every blockDim.x-th. Up
// to kHeld of them are kept in registers; if kHeld is 0, they are read again from x each time.
template <int kHeld, bool kWhole>
class RowPart {
 public:
  __device__ RowPart(float* x, const float* addend, int64_t width) : x_(x), width_(width) {
    if constexpr (kHeld > 0) {
      EVALD_UNROLL
      for (int h = 0; h < kHeld; ++h) {
        if (Place(h) < width_) TakeSum(addend, Place(h), held_[h]);
      }
    } else if (addend != nullptr) {
      float values[kVector];
      for (int64_t i = Place(0); i < width_; i += Step()) TakeSum(addend, i, values);
    }
  }

  // Calls f(place, elements, values).
  template <typename F>
  __device__ void ForEach(const F& f) {
    if constexpr (kHeld > 0) {
      EVALD_UNROLL
      for (int h = 0; h < kHeld; ++h) {
        const int64_t i = Place(h);
        if (i < width_) f(i, VectorSize<kWhole>(i, width_), held_[h]);
      }
    } else {
      float values[kVector];
      for (int64_t i = Place(0); i < width_; i += Step()) {
        const int n = VectorSize<kWhole>(i, width_);
        LoadVector<kWhole>(x_, i, n, values);
        f(i, n, values);
      }
    }
  }

 private:
  __device__ static int64_t Step() { return int64_t{blockDim.x} * kVector; }
  __device__ static int64_t Place(int h) { return h * Step() + int64_t{threadIdx.x} * kVector; }

  __device__ void TakeSum(const float* addend, int64_t i, float (&values)[kVector]) {
    const int n = VectorSize<kWhole>(i, width_);
    LoadVector<kWhole>(x_, i, n, values);
    if (addend == nullptr) return;
    float more[kVector];
    LoadVector<kWhole>(addend, i, n, more);
    for (int j = 0; j < kVector; ++j) values[j] += more[j];
    StoreVector<kWhole>(x_, i, n, values);
  }

  float* x_;
  int64_t width_;
  float held_[kHeld > 0 ? kHeld : 1][kVector];
};

// One block per row.
template <typename Out, int kHeld, bool kWhole>
__global__ void NormalizeKernel(NormArgs args) {
  const int64_t begin = blockIdx.x * args.width;
  const auto width = static_cast<float>(args.width);
  RowPart<kHeld, kWhole> row(args.x + begin, args.addend == nullptr ? nullptr : args.addend + begin,
                             args.width);
  float mean = 0;
  if (args.kind == NormKind::kLayer) {
    float sum = 0;
    row.ForEach([&](int64_t, int n, const float(&values)[kVector]) {
      for (int j = 0; j < kVector; ++j) sum += j < n ? values[j] : 0.0f;
    });
    mean = BlockSum(sum) / width;
  }
  float squares = 0;
  row.ForEach([&](int64_t, int n, const float(&values)[kVector]) {
    for (int j = 0; j < kVector; ++j) {
      const float value = j < n ? values[j] - mean : 0.0f;
      squares = fmaf(value, value, squares);
    }
  });
  const float factor = 1.0f / SqrtOf(BlockSum(squares) / width + args.eps);
  row.ForEach([&](int64_t i, int n, const float(&values)[kVector]) {
    float weight[kVector], bias[kVector] = {}, out[kVector];
    LoadVector<kWhole>(args.weight, i, n, weight);
    if (args.bias != nullptr) LoadVector<kWhole>(args.bias, i, n, bias);
    for (int j = 0; j < kVector; ++j)
      out[j] = fmaf((values[j] - mean) * factor, weight[j], bias[j]);
    StoreVector<kWhole>(static_cast<Out*>(args.out) + begin, i, n, out);
  });
}

template <typename Out>
void LaunchNormalize(const NormArgs& args, const Stream& stream) {
  const int64_t vectors = DivideUp<int64_t>(args.width, kVector);
  const int64_t held = DivideUp<int64_t>(vectors, kThreadsMax);
  const auto threads_for = [&](int64_t each) {
    const int64_t threads = DivideUp<int64_t>(DivideUp(vectors, each), kWarpLanes) * kWarpLanes;
    return static_cast<unsigned>(std::min<int64_t>(threads, kThreadsMax));
  };
  auto normalize = &NormalizeKernel<Out, 0, false>;
  int64_t each = std::min<int64_t>(held, kHeldMax);
  if (WholeVectors(args.width, args.x, args.addend, args.weight, args.bias, args.out)) {
    each = held <= 2 ? held : kHeldMax;
    normalize = held == 1          ? &NormalizeKernel<Out, 1, true>
                : held == 2        ? &NormalizeKernel<Out, 2, true>
                : held <= kHeldMax ? &NormalizeKernel<Out, kHeldMax, true>
                                   : &NormalizeKernel<Out, 0, true>;
  }
  EVALD_LAUNCH(normalize, static_cast<unsigned>(args.rows), threads_for(each), 0, stream, args);
}

}  // namespace

void Normalize(const NormArgs& args, const Stream& stream) {
  if (args.rows == 0) return;
  if (args.out == nullptr) {
    if (args.addend != nullptr) Add(args.x, args.addend, args.rows * args.width, stream);
    return;
  }
  WithElement(args.out_type, [&]<typename T>() { LaunchNormalize<T>(args, stream); });
}

}  // namespace evald::native::cuda
