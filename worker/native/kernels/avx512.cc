// Compiled with -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c if the target is x86-64.
#include "worker/native/kernels.h"

#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512BW__) && defined(__AVX512VL__)

#include "worker/native/kernels/avx512_ops.h"

namespace {
struct Ops : Avx512Ops {
  static constexpr const char* kName = "avx512";
  static constexpr bool kDots = false;
};
}  // namespace

#include "worker/native/kernels/impl.h"

namespace evald::native {
const Kernels* Avx512Kernels() { return &kKernels; }
}  // namespace evald::native

#else

namespace evald::native {
const Kernels* Avx512Kernels() { return nullptr; }
}  // namespace evald::native

#endif
