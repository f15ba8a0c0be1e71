// For every machine: GCC's and clang's vector extension, four lanes, no fused multiply-add.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "worker/native/kernels.h"

namespace {

typedef float Float4 __attribute__((vector_size(16)));
typedef int32_t Int4 __attribute__((vector_size(16)));

float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1Fu;
  const uint32_t fraction = half & 0x3FFu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t bits =
      sign | (exponent == 31 ? 0x7F800000u : (exponent + 112) << 23) | (fraction << 13);
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

struct Ops {
  using V = Float4;
  static constexpr const char* kName = "portable";
  static constexpr bool kDots = false;
  static constexpr int kLanes = 4;
  static constexpr int kRows = 2, kCols = 4, kFewRows = 4;
  static constexpr int kTileRows = 4, kTileVecs = 2;
  static constexpr int kScoreRows = 2, kScoreVecs = 4;
  static constexpr int kValueRows = 2, kValueVecs = 4;

  static V Zero() { return V{0, 0, 0, 0}; }
  static V Set(float x) { return V{x, x, x, x}; }
  // Weights of a checkpoint may begin at any byte.
  static V Load(const void* p) {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static void Store(void* p, V v) { std::memcpy(p, &v, sizeof v); }
  static V Fma(V a, V b, V c) { return a * b + c; }
  static V Add(V a, V b) { return a + b; }
  static V Sub(V a, V b) { return a - b; }
  static V Mul(V a, V b) { return a * b; }
  static V Div(V a, V b) { return a / b; }
  static V Max(V a, V b) { return Select(a > b, a, b); }
  static V Min(V a, V b) { return Select(a < b, a, b); }
  // Adding and subtracting 1.5 * 2^23 rounds to the nearest integer, for magnitudes below 2^22.
  static V Round(V a) {
    const V magic = Set(12582912.0f);
    return (a + magic) - magic;
  }
  static V Pow2(V n) {
    const V biased = n + Set(127.0f);
    Int4 bits;
    // A NaN among the values must not be converted; its lane stays NaN in the product anyway.
    for (int i = 0; i < kLanes; ++i) {
      bits[i] = biased[i] >= 0 && biased[i] < 256 ? static_cast<int32_t>(biased[i]) << 23 : 0;
    }
    V result;
    std::memcpy(&result, &bits, sizeof result);
    return result;
  }
  static V ZeroBelow(V x, V limit, V y) { return Select(x < limit, Zero(), y); }
  static float HMax(V v) {
    float top = v[0];
    for (int i = 1; i < kLanes; ++i) top = v[i] > top ? v[i] : top;
    return top;
  }
  static void AddUp4(V a, V b, V c, V d, bool first, float* totals) {
    const V vectors[] = {a, b, c, d};
    for (int i = 0; i < 4; ++i) {
      const V v = vectors[i];
      const float group = ((v[0] + v[1]) + v[2]) + v[3];
      totals[i] = first ? group : totals[i] + group;
    }
  }
  static void Transpose(V (&v)[kLanes]) {
    for (int i = 0; i < kLanes; ++i) {
      for (int j = 0; j < i; ++j) {
        const float swapped = v[i][j];
        v[i][j] = v[j][i];
        v[j][i] = swapped;
      }
    }
  }
  // Each lane has two bf16 numbers: WidenEven gives the first in memory, WidenOdd the second.
  static V WidenEven(V pairs) { return WidenPairs(pairs, 0); }
  static V WidenOdd(V pairs) { return WidenPairs(pairs, 1); }
  static V WidenBf16(const void* p) {
    uint16_t raw[kLanes];
    std::memcpy(raw, p, sizeof raw);
    const Int4 bits = {raw[0] << 16, raw[1] << 16, raw[2] << 16, raw[3] << 16};
    V v;
    std::memcpy(&v, &bits, sizeof v);
    return v;
  }
  static V WidenF16(const void* p) {
    uint16_t raw[kLanes];
    std::memcpy(raw, p, sizeof raw);
    return V{HalfToFloat(raw[0]), HalfToFloat(raw[1]), HalfToFloat(raw[2]), HalfToFloat(raw[3])};
  }

 private:
  static V WidenPairs(V pairs, int which) {
    uint16_t raw[2 * kLanes], chosen[kLanes];
    std::memcpy(raw, &pairs, sizeof raw);
    for (int i = 0; i < kLanes; ++i) chosen[i] = raw[2 * i + which];
    return WidenBf16(chosen);
  }
  static V Select(Int4 mask, V yes, V no) {
    Int4 a, b;
    std::memcpy(&a, &yes, sizeof a);
    std::memcpy(&b, &no, sizeof b);
    const Int4 bits = (mask & a) | (~mask & b);
    V v;
    std::memcpy(&v, &bits, sizeof v);
    return v;
  }
};

}  // namespace

#include "worker/native/kernels/impl.h"

namespace evald::native {
const Kernels& PortableKernels() { return kKernels; }
}  // namespace evald::native
