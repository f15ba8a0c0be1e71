#include "worker/native/rounded_kernels.h"

#include <bit>
#include <cmath>

namespace evald::native {
namespace {

constexpr uint32_t kSign = 0x80000000u;
constexpr uint32_t kInfinity = 0x7f800000u;

struct Bf16 {
  static constexpr const char* kName = "rounded_bf16";
  static float Round(float x) {
    const auto bits = std::bit_cast<uint32_t>(x);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;
    return std::bit_cast<float>((bits & ~kSign) > kInfinity ? bits : rounded);  // NaN stays
  }
};

struct Fp16 {
  static constexpr const char* kName = "rounded_fp16";
  static float Round(float x) {
    const auto bits = std::bit_cast<uint32_t>(x);
    const uint32_t magnitude = bits & ~kSign, sign = bits & kSign;
    if (magnitude > kInfinity) return x;
    uint32_t rounded = (magnitude + 0xfffu + ((magnitude >> 13) & 1u)) & ~0x1fffu;
    if (rounded >= 0x47800000u)
      rounded = kInfinity;          // 65,536: the first that fp16 has no value for
    if (magnitude < 0x38800000u) {  // 2^-14: below, values are 2^-24 apart
      rounded = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f - 0.5f);
    }
    return std::bit_cast<float>(rounded | sign);
  }
};

// `base` is set once, before the kernels are used.
template <typename Type>
struct Rounded {
  static inline const Kernels* base = nullptr;

  static void Row(float* x, int64_t n) {
    for (int64_t i = 0; i < n; ++i) x[i] = Type::Round(x[i]);
  }
  static void Multiply(const MultiplyArgs& args) {
    base->multiply(args);
    for (int64_t row = 0; row < args.rows; ++row)
      Row(args.y + row * args.y_stride + args.first, args.end - args.first);
  }
  static void Attend(const AttendArgs& args) {
    base->attend(args);
    for (int i = 0; i < args.count; ++i) Row(args.rows[i].out, args.head_dim);
  }
  static void RmsNorm(const float* x, const float* weight, float eps, int64_t n, float* out) {
    base->rms_norm(x, weight, eps, n, out);
    Row(out, n);
  }
  static void LayerNorm(const float* x, const float* weight, const float* bias, float eps,
                        int64_t n, float* out) {
    base->layer_norm(x, weight, bias, eps, n, out);
    Row(out, n);
  }
  static void Activate(Activation activation, const float* x, const float* factor, int64_t n,
                       float* out) {
    base->activate(activation, x, factor, n, out);
    Row(out, n);
  }
  static void Add(float* x, const float* y, int64_t n) {
    base->add(x, y, n);
    Row(x, n);
  }
  static void SoftCap(float* x, int64_t n, float scale, float cap) {
    base->soft_cap(x, n, scale, cap);
    Row(x, n);
  }

  static Kernels Over(const Kernels& kernels) {
    base = &kernels;
    Kernels rounded = kernels;
    rounded.name = Type::kName;
    rounded.multiply = Multiply;
    rounded.attend = Attend;
    rounded.rms_norm = RmsNorm;
    rounded.layer_norm = LayerNorm;
    rounded.activate = Activate;
    rounded.add = Add;
    rounded.soft_cap = SoftCap;
    rounded.round = Row;
    return rounded;
  }
};

}  // namespace

const Kernels& RoundedToBf16(const Kernels& base) {
  static const Kernels kernels = Rounded<Bf16>::Over(base);
  return kernels;
}

const Kernels& RoundedToFp16(const Kernels& base) {
  static const Kernels kernels = Rounded<Fp16>::Over(base);
  return kernels;
}

}  // namespace evald::native
