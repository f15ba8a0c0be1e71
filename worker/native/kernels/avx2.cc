// Compiled with -mavx2 -mfma -mf16c if the target is x86-64.
#include "worker/native/kernels.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

#include <immintrin.h>

namespace {

struct Ops {
  using V = __m256;
  static constexpr const char* kName = "avx2";
  static constexpr bool kDots = false;
  static constexpr int kLanes = 8;
  static constexpr int kRows = 4, kCols = 3, kFewRows = 8;
  static constexpr int kTileRows = 6, kTileVecs = 2;
  static constexpr int kScoreRows = 4, kScoreVecs = 2;
  static constexpr int kValueRows = 4, kValueVecs = 2;

  static V Zero() { return _mm256_setzero_ps(); }
  static V Set(float x) { return _mm256_set1_ps(x); }
  static V Load(const float* p) { return _mm256_loadu_ps(p); }
  static void Store(float* p, V v) { _mm256_storeu_ps(p, v); }
  static V Fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
  static V Add(V a, V b) { return _mm256_add_ps(a, b); }
  static V Sub(V a, V b) { return _mm256_sub_ps(a, b); }
  static V Mul(V a, V b) { return _mm256_mul_ps(a, b); }
  static V Div(V a, V b) { return _mm256_div_ps(a, b); }
  static V Max(V a, V b) { return _mm256_max_ps(a, b); }
  static V Min(V a, V b) { return _mm256_min_ps(a, b); }
  static V Round(V a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static V Pow2(V n) {
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
  }
  static V ZeroBelow(V x, V limit, V y) {
    return _mm256_and_ps(_mm256_cmp_ps(x, limit, _CMP_NLT_UQ), y);
  }
  static float HMax(V v) {
    __m128 half = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    half = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(half, _mm_shuffle_ps(half, half, 1)));
  }
  static void AddUp4(V a, V b, V c, V d, bool first, float* totals) {
    const V ab_low = _mm256_unpacklo_ps(a, b), ab_high = _mm256_unpackhi_ps(a, b);
    const V cd_low = _mm256_unpacklo_ps(c, d), cd_high = _mm256_unpackhi_ps(c, d);
    const V groups = Add(
        Add(Add(LowPairs(ab_low, cd_low), HighPairs(ab_low, cd_low)), LowPairs(ab_high, cd_high)),
        HighPairs(ab_high, cd_high));
    __m128 total = _mm256_castps256_ps128(groups);
    if (!first) total = _mm_add_ps(_mm_loadu_ps(totals), total);
    _mm_storeu_ps(totals, _mm_add_ps(total, _mm256_extractf128_ps(groups, 1)));
  }
  [[gnu::always_inline]] static void Transpose(V (&v)[kLanes]) {
    V t[kLanes];
    for (int i = 0; i < kLanes; i += 2) {
      t[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
      t[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
    }
    // Now v[4 i + j] holds in its l-th half column 4 l + j of the rows 4 i ... 4 i + 3.
    for (int i = 0; i < kLanes; i += 4) {
      v[i] = LowPairs(t[i], t[i + 2]);
      v[i + 1] = HighPairs(t[i], t[i + 2]);
      v[i + 2] = LowPairs(t[i + 1], t[i + 3]);
      v[i + 3] = HighPairs(t[i + 1], t[i + 3]);
    }
    for (int j = 0; j < 4; ++j) {
      t[j] = _mm256_permute2f128_ps(v[j], v[4 + j], 0x20);
      t[4 + j] = _mm256_permute2f128_ps(v[j], v[4 + j], 0x31);
    }
    for (int i = 0; i < kLanes; ++i) v[i] = t[i];
  }
  static V WidenEven(V pairs) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(pairs), 16));
  }
  static V WidenOdd(V pairs) {
    const __m256i high = _mm256_set1_epi32(static_cast<int>(0xFFFF0000u));
    return _mm256_castsi256_ps(_mm256_and_si256(_mm256_castps_si256(pairs), high));
  }
  static V WidenBf16(const void* p) {
    const __m128i raw = _mm_loadu_si128(static_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(raw), 16));
  }
  static V WidenF16(const void* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(p)));
  }

 private:
  static V LowPairs(V a, V b) {
    return _mm256_castpd_ps(_mm256_unpacklo_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)));
  }
  static V HighPairs(V a, V b) {
    return _mm256_castpd_ps(_mm256_unpackhi_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)));
  }
};

}  // namespace

#include "worker/native/kernels/impl.h"

namespace evald::native {
const Kernels* Avx2Kernels() { return &kKernels; }
}  // namespace evald::native

#else

namespace evald::native {
const Kernels* Avx2Kernels() { return nullptr; }
}  // namespace evald::native

#endif
