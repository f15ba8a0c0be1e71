// Compiled as avx512.cc, and with -mavx512bf16.
#include "worker/native/kernels.h"

#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512BW__) && \
    defined(__AVX512VL__) && defined(__AVX512BF16__)

#include "worker/native/kernels/avx512_ops.h"

namespace {
struct Ops : Avx512Ops {
  static constexpr const char* kName = "avx512_bf16";
  static constexpr bool kDots = true;
  // Rounds to nearest even; a number too small for a normal one becomes 0.
  static V RoundToPairs(V first, V second) {
    return reinterpret_cast<V>(_mm512_cvtne2ps_pbh(second, first));
  }
  // sums + x[0] * w[0] + x[1] * w[1] of each pair.
  static V DotPairs(V x, V w, V sums) {
    return _mm512_dpbf16_ps(sums, reinterpret_cast<__m512bh>(x), reinterpret_cast<__m512bh>(w));
  }
};
}  // namespace

#include "worker/native/kernels/impl.h"

namespace evald::native {
const Kernels* Avx512Bf16Kernels() { return &kKernels; }
}  // namespace evald::native

#else

namespace evald::native {
const Kernels* Avx512Bf16Kernels() { return nullptr; }
}  // namespace evald::native

#endif
