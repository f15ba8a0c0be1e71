#include "worker/native/cuda/kernels.h"
#include "worker/native/cuda/kernels/elements.cuh"

namespace evald::native::cuda {
namespace {

// e^x. If the result stays fp32, to fp32's precision. Otherwise by the special function unit: its
// error of about |x| * 2^-24 vanishes in the rounding to 16 bits.
template <typename T>
__device__ inline float ExpFor(float x) {
  constexpr float kLog2OfE = 1.4426950408889634f;
  if constexpr (sizeof(T) == sizeof(float)) {
    return ExpOf(x);
  } else {
    return Exp2Of(x * kLog2OfE);
  }
}

template <typename T>
__device__ inline float TimesSigmoid(float x, float y) {
  return x / (1.0f + ExpFor<T>(-y));
}

template <typename T, Activation kActivation>
__device__ inline float Activated(float x) {
  if constexpr (kActivation == Activation::kSilu) {
    return TimesSigmoid<T>(x, x);
  } else if constexpr (kActivation == Activation::kGelu) {
    // Phi(x) = erfc(-x / sqrt 2) / 2, which keeps its precision where it is small.
    return 0.5f * x * erfcf(x * -0.70710678118654752f);
  } else {
    // 0.5 x (1 + tanh y) = x * sigmoid(2 y), y = sqrt(2 / pi) (x + 0.044715 x^3).
    const float y = fmaf(0.044715f * x * x, x, x);
    return TimesSigmoid<T>(x, 2 * 0.79788456080286536f * y);
  }
}

template <typename T, Activation kActivation, bool kGated, bool kWhole>
__global__ void ActivateKernel(ActivateArgs args) {
  const auto [row, i] = PlaceOfThread(args.width);
  if (i >= args.width) return;
  const int n = VectorSize<kWhole>(i, args.width);
  const T* in = static_cast<const T*>(args.in) + row * args.width * (kGated ? 2 : 1);
  const auto load = [&](int64_t at, float(&values)[kVector]) {
    LoadVector<kWhole>(in, at, n, values);
    if (args.bias == nullptr) return;
    float bias[kVector];
    LoadVector<kWhole>(args.bias, at, n, bias);
    for (int j = 0; j < kVector; ++j) values[j] += bias[j];
  };
  float values[kVector];
  load(i, values);
  for (int j = 0; j < kVector; ++j) values[j] = Activated<T, kActivation>(values[j]);
  if constexpr (kGated) {
    float factors[kVector];
    load(args.width + i, factors);
    for (int j = 0; j < kVector; ++j) values[j] *= factors[j];
  }
  StoreVector<kWhole>(static_cast<T*>(args.out) + row * args.width, i, n, values);
}

template <typename T, Activation kActivation>
void LaunchActivate(const ActivateArgs& args, const Stream& stream) {
  const bool whole = WholeVectors(args.width, args.in, args.bias, args.out);
  const auto activate = args.gated ? (whole ? &ActivateKernel<T, kActivation, true, true>
                                            : &ActivateKernel<T, kActivation, true, false>)
                                   : (whole ? &ActivateKernel<T, kActivation, false, true>
                                            : &ActivateKernel<T, kActivation, false, false>);
  EVALD_LAUNCH(activate, StretchBlocks(args.rows, args.width), kThreads, 0, stream, args);
}

}  // namespace

void Activate(const ActivateArgs& args, const Stream& stream) {
  if (args.rows == 0) return;
  WithElement(args.type, [&]<typename T>() {
    switch (args.activation) {
      case Activation::kSilu:
        return LaunchActivate<T, Activation::kSilu>(args, stream);
      case Activation::kGelu:
        return LaunchActivate<T, Activation::kGelu>(args, stream);
      case Activation::kGeluTanh:
        return LaunchActivate<T, Activation::kGeluTanh>(args, stream);
    }
  });
}

}  // namespace evald::native::cuda
