#pragma once
// The vector operations of AVX-512 (impl.h), from which avx512.cc and avx512_bf16.cc make their
// Ops.

#include <immintrin.h>

namespace {

struct Avx512Ops {
  using V = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kRows = 6, kCols = 4, kFewRows = 12;
  static constexpr int kTileRows = 14, kTileVecs = 2;
  static constexpr int kScoreRows = 8, kScoreVecs = 2;
  static constexpr int kValueRows = 4, kValueVecs = 4;

  static V Zero() { return _mm512_setzero_ps(); }
  static V Set(float x) { return _mm512_set1_ps(x); }
  static V Load(const float* p) { return _mm512_loadu_ps(p); }
  static void Store(float* p, V v) { _mm512_storeu_ps(p, v); }
  static V Fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  static V Add(V a, V b) { return _mm512_add_ps(a, b); }
  static V Sub(V a, V b) { return _mm512_sub_ps(a, b); }
  static V Mul(V a, V b) { return _mm512_mul_ps(a, b); }
  static V Div(V a, V b) { return _mm512_div_ps(a, b); }
  static V Max(V a, V b) { return _mm512_max_ps(a, b); }
  static V Min(V a, V b) { return _mm512_min_ps(a, b); }
  static V Round(V a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static V Pow2(V n) {
    const __m512i exponent = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
    return _mm512_castsi512_ps(_mm512_slli_epi32(exponent, 23));
  }
  static V ZeroBelow(V x, V limit, V y) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, limit, _CMP_NLT_UQ), y);
  }
  static float HMax(V v) {
    const __m256 half = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 quarter = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    quarter = _mm_max_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_max_ss(quarter, _mm_shuffle_ps(quarter, quarter, 1)));
  }
  static void AddUp4(V a, V b, V c, V d, bool first, float* totals) {
    const V ab_low = _mm512_unpacklo_ps(a, b), ab_high = _mm512_unpackhi_ps(a, b);
    const V cd_low = _mm512_unpacklo_ps(c, d), cd_high = _mm512_unpackhi_ps(c, d);
    const V groups = Add(
        Add(Add(LowPairs(ab_low, cd_low), HighPairs(ab_low, cd_low)), LowPairs(ab_high, cd_high)),
        HighPairs(ab_high, cd_high));
    __m128 total = _mm512_castps512_ps128(groups);
    if (!first) total = _mm_add_ps(_mm_loadu_ps(totals), total);
    total = _mm_add_ps(total, _mm512_extractf32x4_ps(groups, 1));
    total = _mm_add_ps(total, _mm512_extractf32x4_ps(groups, 2));
    _mm_storeu_ps(totals, _mm_add_ps(total, _mm512_extractf32x4_ps(groups, 3)));
  }
  [[gnu::always_inline]] static void Transpose(V (&v)[kLanes]) {
    V t[kLanes];
    for (int i = 0; i < kLanes; i += 2) {
      t[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
      t[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
    }
    // Now v[4 i + j] holds in its l-th quarter column 4 l + j of the rows 4 i ... 4 i + 3.
    for (int i = 0; i < kLanes; i += 4) {
      v[i] = LowPairs(t[i], t[i + 2]);
      v[i + 1] = HighPairs(t[i], t[i + 2]);
      v[i + 2] = LowPairs(t[i + 1], t[i + 3]);
      v[i + 3] = HighPairs(t[i + 1], t[i + 3]);
    }
    constexpr int kEven = 0x88, kOdd = 0xDD;  // quarters of both operands
    for (int j = 0; j < 4; ++j) {
      t[j] = _mm512_shuffle_f32x4(v[j], v[4 + j], kEven);
      t[4 + j] = _mm512_shuffle_f32x4(v[j], v[4 + j], kOdd);
      t[8 + j] = _mm512_shuffle_f32x4(v[8 + j], v[12 + j], kEven);
      t[12 + j] = _mm512_shuffle_f32x4(v[8 + j], v[12 + j], kOdd);
    }
    for (int j = 0; j < 4; ++j) {
      v[j] = _mm512_shuffle_f32x4(t[j], t[8 + j], kEven);
      v[4 + j] = _mm512_shuffle_f32x4(t[4 + j], t[12 + j], kEven);
      v[8 + j] = _mm512_shuffle_f32x4(t[j], t[8 + j], kOdd);
      v[12 + j] = _mm512_shuffle_f32x4(t[4 + j], t[12 + j], kOdd);
    }
  }
  static V WidenEven(V pairs) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(pairs), 16));
  }
  static V WidenOdd(V pairs) {
    const __m512i high = _mm512_set1_epi32(static_cast<int>(0xFFFF0000u));
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(pairs), high));
  }
  static V WidenBf16(const void* p) {
    const __m256i raw = _mm256_loadu_si256(static_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(raw), 16));
  }
  static V WidenF16(const void* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
  }

 private:
  static V LowPairs(V a, V b) {
    return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  }
  static V HighPairs(V a, V b) {
    return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  }
};

}  // namespace
