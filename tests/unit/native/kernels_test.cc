#include "worker/native/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "worker/native/aligned.h"
#include "worker/native/cpu.h"

namespace evald::native {
namespace {

std::vector<float> Random(size_t n, unsigned seed, float scale = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(n);
  for (float& v : values) v = normal(generator);
  return values;
}

// bf16 of numbers that fit exactly.
std::vector<uint16_t> Bf16(std::vector<float>* values) {
  std::vector<uint16_t> out;
  for (float& v : *values) {
    uint32_t bits;
    std::memcpy(&bits, &v, 4);
    bits &= 0xFFFF0000u;
    std::memcpy(&v, &bits, 4);
    out.push_back(static_cast<uint16_t>(bits >> 16));
  }
  return out;
}

std::vector<float> Product(const Kernels& kernels, const std::vector<float>& x, int64_t rows,
                           int64_t inner, const void* weights, WeightType type, int64_t out,
                           const float* bias = nullptr) {
  std::vector<float> y(static_cast<size_t>(rows * out), -1);
  Floats scratch(static_cast<size_t>(kernels.multiply_scratch_floats(rows)));
  Floats packed;
  MultiplyArgs args;
  args.x = x.data();
  if (const int64_t floats = kernels.packed_floats(rows, inner, type); floats > 0) {
    packed.assign(static_cast<size_t>(floats), NAN);
    for (int64_t block = 0; block < kernels.row_blocks(rows); ++block) {
      kernels.pack_rows(x.data(), rows, inner, type, block, packed.data());
    }
    args.x = packed.data();
  }
  args.rows = rows;
  args.inner = inner;
  args.weights = weights;
  args.type = type;
  args.end = out;
  args.bias = bias;
  args.y = y.data();
  args.y_stride = out;
  args.scratch = scratch.data();
  kernels.multiply(args);
  return y;
}

class KernelsTest : public testing::TestWithParam<std::string> {
 protected:
  const Kernels& kernels_ = SelectKernels(GetParam());

  std::vector<float> Multiply(const std::vector<float>& x, int64_t rows, int64_t inner,
                              const void* weights, WeightType type, int64_t out,
                              const float* bias = nullptr) {
    return Product(kernels_, x, rows, inner, weights, type, out, bias);
  }
};
INSTANTIATE_TEST_SUITE_P(All, KernelsTest, testing::ValuesIn(AvailableKernels()),
                         [](const auto& info) { return info.param; });

TEST_P(KernelsTest, MultiplyAgainstDoublesForOddSizes) {
  for (const int64_t inner : {1, 3, 16, 17, 40, 73, 256}) {
    for (const int64_t rows : {1, 2, 5, 7, 13, 40}) {
      const int64_t out = 11;
      const auto x = Random(static_cast<size_t>(rows * inner), 1);
      const auto w = Random(static_cast<size_t>(out * inner), 2);
      const auto bias = Random(static_cast<size_t>(out), 3);
      const auto y = Multiply(x, rows, inner, w.data(), WeightType::kF32, out, bias.data());
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t n = 0; n < out; ++n) {
          double expected = bias[static_cast<size_t>(n)];
          for (int64_t i = 0; i < inner; ++i) {
            expected += static_cast<double>(x[static_cast<size_t>(r * inner + i)]) *
                        w[static_cast<size_t>(n * inner + i)];
          }
          EXPECT_NEAR(y[static_cast<size_t>(r * out + n)], expected, 2e-5);
        }
      }
    }
  }
}

TEST_P(KernelsTest, RowsAndColumnsDoNotDependOnTheirNeighbours) {
  const int64_t inner = 73, rows = 41, out = 13;
  const auto x = Random(static_cast<size_t>(rows * inner), 4);
  auto values = Random(static_cast<size_t>(out * inner), 5);
  const auto w = Bf16(&values);
  const auto all = Multiply(x, rows, inner, w.data(), WeightType::kBF16, out);
  // The same numbers from fp32 weights, row by row and column by column.
  for (int64_t r = 0; r < rows; ++r) {
    const std::vector<float> row(x.begin() + r * inner, x.begin() + (r + 1) * inner);
    for (int64_t n = 0; n < out; ++n) {
      const auto one = Multiply(row, 1, inner, values.data() + n * inner, WeightType::kF32, 1);
      EXPECT_EQ(one[0], all[static_cast<size_t>(r * out + n)]);
    }
  }
}

// More rows, columns and inner elements than a block has, with remainders of each.
TEST_P(KernelsTest, BlocksOfLargeProductsDoNotShow) {
  const int64_t inner = 1291, rows = 101, out = 53;
  const auto x = Random(static_cast<size_t>(rows * inner), 12);
  auto values = Random(static_cast<size_t>(out * inner), 13);
  const auto w = Bf16(&values);
  const auto bias = Random(static_cast<size_t>(out), 14);
  const auto all = Multiply(x, rows, inner, w.data(), WeightType::kBF16, out, bias.data());
  EXPECT_EQ(Multiply(x, rows, inner, values.data(), WeightType::kF32, out, bias.data()), all);
  for (int64_t r = 0; r < rows; ++r) {
    const std::vector<float> row(x.begin() + r * inner, x.begin() + (r + 1) * inner);
    const auto one = Multiply(row, 1, inner, w.data(), WeightType::kBF16, out, bias.data());
    const std::vector<float> same(all.begin() + r * out, all.begin() + (r + 1) * out);
    ASSERT_EQ(one, same) << "row " << r;
  }
}

TEST_P(KernelsTest, WidensEveryHalfAndAtOddAddresses) {
  std::vector<unsigned char> bytes(2 * 65536 + 1);
  for (uint32_t i = 0; i < 65536; ++i) {
    const auto half = static_cast<uint16_t>(i);
    std::memcpy(bytes.data() + 1 + 2 * i, &half, 2);
  }
  std::vector<float> wide(65536);
  kernels_.widen(bytes.data() + 1, WeightType::kF16, 65536, wide.data());
  for (uint32_t i = 0; i < 65536; ++i) {
    const double sign = i & 0x8000 ? -1 : 1;
    const int exponent = static_cast<int>(i >> 10 & 31);
    const double fraction = i & 1023;
    if (exponent == 31) {
      EXPECT_EQ(std::isnan(wide[i]), fraction != 0) << i;
      EXPECT_EQ(std::isinf(wide[i]), fraction == 0) << i;
      continue;
    }
    const double expected =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    ASSERT_EQ(wide[i], sign * expected) << i;
  }
  kernels_.widen(bytes.data() + 1, WeightType::kBF16, 65535, wide.data());
  for (uint32_t i = 0; i < 65535; ++i) {
    uint32_t bits;
    std::memcpy(&bits, &wide[i], 4);
    ASSERT_EQ(bits, i << 16);
  }
}

// The softmax attention of one position at a time, in double precision.
std::vector<double> Reference(const std::vector<float>& q, const std::vector<float>& k,
                              const std::vector<float>& v, int64_t first, int64_t keys, int dim,
                              double scale, double cap) {
  std::vector<double> scores, out(static_cast<size_t>(dim));
  double top = -1e300, total = 0;
  for (int64_t j = first; j < keys; ++j) {
    double s = 0;
    for (int d = 0; d < dim; ++d) {
      s += static_cast<double>(q[static_cast<size_t>(d)]) * k[static_cast<size_t>(j * dim + d)];
    }
    s *= scale;
    if (cap > 0) s = cap * std::tanh(s / cap);
    scores.push_back(s);
    top = std::max(top, s);
  }
  for (double& s : scores) total += s = std::exp(s - top);
  for (int64_t j = first; j < keys; ++j) {
    for (int d = 0; d < dim; ++d) {
      out[static_cast<size_t>(d)] +=
          scores[static_cast<size_t>(j - first)] / total * v[static_cast<size_t>(j * dim + d)];
    }
  }
  return out;
}

TEST_P(KernelsTest, AttentionAgainstDoublesWhateverTheTile) {
  const int64_t keys = 150;
  // Without a cap, and with one that most scores come near.
  for (const auto& [dim, cap] : std::vector<std::pair<int, float>>{
           {2, 0}, {16, 0}, {24, 0}, {40, 0}, {64, 0}, {80, 0}, {16, 2.5f}, {40, 2.5f}}) {
    const int group = 3;
    const int64_t stride = (dim + 15) / 16 * 16;
    const auto k = Random(static_cast<size_t>(keys * dim), 6);
    const auto v = Random(static_cast<size_t>(keys * dim), 7);
    const auto q = Random(static_cast<size_t>(keys * group * dim), 8, 3);
    // Old content beyond the last key must not matter.
    std::vector<std::vector<float>> memory(
        3, std::vector<float>(static_cast<size_t>(kPagePositions * (dim + stride)), NAN));
    std::vector<const float*> pages;
    for (auto& page : memory) pages.push_back(page.data());
    for (int64_t j = 0; j < keys; ++j) {
      float* page = memory[static_cast<size_t>(j / kPagePositions)].data();
      const int64_t slot = j % kPagePositions;
      float* value = page + kPagePositions * dim + slot * stride;
      std::fill_n(value, stride, 0.0f);
      for (int d = 0; d < dim; ++d) {
        page[slot / kKeyBlock * dim * kKeyBlock + d * kKeyBlock + slot % kKeyBlock] =
            k[static_cast<size_t>(j * dim + d)];
        value[d] = v[static_cast<size_t>(j * dim + d)];
      }
    }
    AttendArgs args;
    args.head_dim = dim;
    args.scale = 1 / std::sqrt(static_cast<float>(dim));
    args.cap = cap;
    args.value_offset = kPagePositions * dim;
    args.value_stride = stride;
    for (const int64_t window : {0, 1, 20, 100, 150, 1000}) {
      std::vector<float> first;
      for (const int step : {1, 2, 5, 150}) {
        std::vector<float> out(q.size(), -1), scratch(static_cast<size_t>(step * group * 192));
        args.scratch = scratch.data();
        for (int64_t p = 0; p < keys; p += step) {
          std::vector<AttendRow> rows;
          for (int64_t i = p * group; i < std::min(keys, p + step) * group; ++i) {
            const int64_t end = i / group + 1;
            rows.push_back({q.data() + i * dim, out.data() + i * dim, pages.data(),
                            window == 0 ? 0 : std::max<int64_t>(0, end - window), end});
          }
          args.rows = rows.data();
          args.count = static_cast<int>(rows.size());
          kernels_.attend(args);
        }
        if (first.empty()) first = out;
        ASSERT_EQ(out, first) << "step " << step << ", head_dim " << dim << ", window " << window;
      }
      for (const int64_t p : {0, 1, 15, 19, 20, 63, 64, 149}) {
        const int64_t begin_key = window == 0 ? 0 : std::max<int64_t>(0, p + 1 - window);
        for (int h = 0; h < group; ++h) {
          const auto begin = q.begin() + (p * group + h) * dim;
          const auto expected =
              Reference({begin, begin + dim}, k, v, begin_key, p + 1, dim, args.scale, cap);
          for (int d = 0; d < dim; ++d) {
            EXPECT_NEAR(first[static_cast<size_t>((p * group + h) * dim + d)],
                        expected[static_cast<size_t>(d)], 1e-5);
          }
        }
      }
    }
  }
}

// Sequences of different lengths that share their first page.
TEST_P(KernelsTest, AttentionOfSequencesThatShareAPageIsThatOfEachAlone) {
  const int dim = 40, group = 3, sequences = 5;
  const int64_t stride = 48, page_floats = kPagePositions * (dim + stride);
  std::vector<std::vector<float>> memory;
  for (unsigned i = 0; i <= sequences; ++i) {
    memory.push_back(Random(static_cast<size_t>(page_floats), 20 + i));
  }
  const auto q = Random(static_cast<size_t>(sequences * group * dim), 19, 3);
  std::vector<std::vector<const float*>> pages;
  for (size_t s = 0; s < sequences; ++s) {
    const size_t filled = 7 + 9 * s;  // positions of its own; the rest of the page must not matter
    float* values = memory[s + 1].data() + kPagePositions * dim;
    std::fill(values + filled * stride, values + kPagePositions * stride, NAN);
    pages.push_back({memory[0].data(), memory[s + 1].data()});
  }
  std::vector<float> out(q.size(), -1), scratch(static_cast<size_t>(sequences * group * 128));
  std::vector<AttendRow> rows;
  for (int64_t i = 0; i < sequences * group; ++i) {
    const int64_t s = i / group;
    rows.push_back({q.data() + i * dim, out.data() + i * dim, pages[static_cast<size_t>(s)].data(),
                    s == 2 ? 40 : 0, kPagePositions + 7 + 9 * s});
  }
  AttendArgs args;
  args.head_dim = dim;
  args.scale = 0.2f;
  args.value_offset = kPagePositions * dim;
  args.value_stride = stride;
  args.scratch = scratch.data();
  args.rows = rows.data();
  args.count = static_cast<int>(rows.size());
  kernels_.attend(args);
  const std::vector<float> together = out;
  for (const float x : together) ASSERT_TRUE(std::isfinite(x));
  std::fill(out.begin(), out.end(), -1.0f);
  args.count = 1;
  for (; args.rows != rows.data() + rows.size(); ++args.rows) kernels_.attend(args);
  EXPECT_EQ(out, together);
}

TEST_P(KernelsTest, CapsAgainstDoubles) {
  for (const float cap : {30.0f, 1.0f}) {
    std::vector<float> x;
    for (float size = 1e-8f; size < 1e8f; size *= 1.07f) x.insert(x.end(), {size, -size});
    x.insert(x.end(), {0.0f, INFINITY, -INFINITY});
    std::vector<float> capped = x;
    kernels_.soft_cap(capped.data(), static_cast<int64_t>(x.size()), 0.25f, cap);
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = cap * std::tanh(0.25 * x[i] / cap);
      EXPECT_LE(std::abs(capped[i]), cap) << x[i];
      // Near 0 the number itself is left.
      const double near = std::abs(x[i]) < 0.01f ? 4e-7 * std::abs(expected) : 2e-7 * cap;
      EXPECT_NEAR(capped[i], expected, near) << x[i];
    }
  }
  for (const int64_t count : {1, 15, 33}) {
    std::vector<float> x(static_cast<size_t>(count), 1.0f);
    x.back() = NAN;
    x.push_back(7);  // behind the last one
    kernels_.soft_cap(x.data(), count, 1, 5);
    EXPECT_TRUE(std::isnan(x[static_cast<size_t>(count) - 1]));
    EXPECT_EQ(x.back(), 7);
    EXPECT_TRUE(count == 1 || std::abs(x[0] - 5 * std::tanh(0.2)) < 1e-6) << x[0];
  }
}

TEST_P(KernelsTest, ActivationsAgainstDoubles) {
  const std::vector<std::pair<Activation, double (*)(double)>> functions = {
      {Activation::kSilu, [](double x) { return x / (1 + std::exp(-x)); }},
      {Activation::kGelu, [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }},
      {Activation::kGeluTanh, [](double x) {
         return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
       }}};
  std::vector<float> x = Random(4001, 9, 4);
  for (const float special : {0.0f, -0.0f, 1.4142135f, -1.4142135f, 30.0f, -30.0f, 1e-6f}) {
    x.push_back(special);
  }
  const std::vector<float> factor = Random(x.size(), 10);
  for (const auto& [activation, reference] : functions) {
    for (const bool gated : {false, true}) {
      std::vector<float> out(x.size() + 1, -7);
      kernels_.activate(activation, x.data(), gated ? factor.data() : nullptr,
                        static_cast<int64_t>(x.size()), out.data());
      EXPECT_EQ(out.back(), -7) << "written past the end";
      for (size_t i = 0; i < x.size(); ++i) {
        const double expected = reference(x[i]) * (gated ? factor[i] : 1.0f);
        // If the tail is tiny, 1 + tanh and 1 + erf have no relative precision to compare.
        ASSERT_NEAR(out[i], expected, 4e-7 * std::abs(expected) + 1e-7) << x[i];
      }
    }
  }
}

TEST_P(KernelsTest, ExponentialsAreAccurate) {
  std::vector<float> input;
  for (float x = -100; x < 90; x += 0.37f) input.push_back(x);
  const auto count = static_cast<int64_t>(input.size());
  float maximum = 0;
  ASSERT_TRUE(kernels_.maximum(input.data(), count, &maximum));
  EXPECT_EQ(maximum, input.back());
  double expected = 0;
  for (const float x : input) expected += std::exp(static_cast<double>(x) - maximum);
  EXPECT_NEAR(kernels_.sum_exp(input.data(), count, maximum), expected, 1e-6);
}

TEST_P(KernelsTest, LayerNormAgainstDoubles) {
  for (const size_t n : {1, 5, 16, 40, 73, 256}) {
    auto x = Random(n, 11, 3);
    for (float& v : x) v += 10;
    const auto weight = Random(n, 12), bias = Random(n, 13);
    std::vector<float> out(n);
    kernels_.layer_norm(x.data(), weight.data(), bias.data(), 1e-5f, static_cast<int64_t>(n),
                        out.data());
    double mean = 0, variance = 0;
    for (const float v : x) mean += v / static_cast<double>(n);
    for (const float v : x) variance += (v - mean) * (v - mean) / static_cast<double>(n);
    for (size_t i = 0; i < n; ++i) {
      EXPECT_NEAR(out[i], (x[i] - mean) / std::sqrt(variance + 1e-5) * weight[i] + bias[i], 2e-5);
    }
  }
}

TEST_P(KernelsTest, MaximumFindsWhatIsNotFinite) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    for (size_t at = 0; at < 37; ++at) {
      auto x = Random(37, 9);
      float maximum = 0;
      ASSERT_TRUE(kernels_.maximum(x.data(), 37, &maximum));
      x[at] = bad;
      ASSERT_FALSE(kernels_.maximum(x.data(), 37, &maximum)) << at;
    }
  }
}

TEST_P(KernelsTest, NormAgainstDoubles) {
  const auto x = Random(73, 10), weight = Random(73, 11);
  std::vector<float> out(73);
  kernels_.rms_norm(x.data(), weight.data(), 0.01f, 73, out.data());
  double squares = 0;
  for (const float v : x) squares += static_cast<double>(v) * v;
  for (size_t i = 0; i < 73; ++i) {
    EXPECT_NEAR(out[i], x[i] / std::sqrt(squares / 73 + 0.01) * weight[i], 1e-5);
  }
}

// Needs a processor that multiplies bf16.
class Bf16ProductsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasBf16Products()) GTEST_SKIP() << "this processor has no bf16 dot instruction";
    kernels_ = &SelectKernels("avx512_bf16");
  }

  const Kernels* kernels_ = nullptr;
};

// Rounds to nearest even, with integers.
float RoundToBf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000u;
  std::memcpy(&value, &bits, 4);
  return value;
}

TEST_F(Bf16ProductsTest, AgainstDoublesOfRoundedRows) {
  for (const int64_t inner : {2, 16, 30, 32, 34, 74, 256, 2050, 4866}) {
    for (const int64_t rows : {1, 3, 12, 13, 41}) {
      const int64_t out = 37;
      const auto x = Random(static_cast<size_t>(rows * inner), 21);
      auto values = Random(static_cast<size_t>(out * inner), 22);
      const auto w = Bf16(&values);
      const auto bias = Random(static_cast<size_t>(out), 23);
      const auto y =
          Product(*kernels_, x, rows, inner, w.data(), WeightType::kBF16, out, bias.data());
      double unrounded_error = 0;
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t n = 0; n < out; ++n) {
          double expected = bias[static_cast<size_t>(n)], unrounded = expected, size = 1;
          for (int64_t i = 0; i < inner; ++i) {
            const float value = x[static_cast<size_t>(r * inner + i)];
            const double weight = values[static_cast<size_t>(n * inner + i)];
            expected += RoundToBf16(value) * weight;
            unrounded += value * weight;
            size += std::abs(value * weight);
          }
          const double found = y[static_cast<size_t>(r * out + n)];
          ASSERT_NEAR(found, expected, 2e-7 * size) << inner << " " << rows << " " << r << " " << n;
          unrounded_error = std::max(unrounded_error, std::abs(found - unrounded));
        }
      }
      EXPECT_GT(unrounded_error, 1e-4) << "rows were not rounded";
    }
  }
}

TEST_F(Bf16ProductsTest, RowsAndColumnsDoNotDependOnTheirNeighbours) {
  const int64_t inner = 2346, rows = 101, out = 53;
  const auto x = Random(static_cast<size_t>(rows * inner), 24);
  auto values = Random(static_cast<size_t>(out * inner), 25);
  const auto w = Bf16(&values);
  const auto all = Product(*kernels_, x, rows, inner, w.data(), WeightType::kBF16, out);
  for (int64_t r = 0; r < rows; ++r) {
    const std::vector<float> row(x.begin() + r * inner, x.begin() + (r + 1) * inner);
    for (const int64_t n : {r % out, (r * 7 + 3) % out}) {
      const auto one =
          Product(*kernels_, row, 1, inner, w.data() + n * inner, WeightType::kBF16, 1);
      ASSERT_EQ(one[0], all[static_cast<size_t>(r * out + n)]) << "row " << r << ", column " << n;
    }
  }
}

// Products that have no pairs of bf16 are computed as without the instruction.
TEST_F(Bf16ProductsTest, OtherProductsAreThoseOfAvx512) {
  const int64_t rows = 20, out = 19;
  const Kernels& plain = SelectKernels("avx512");
  for (const int64_t inner : {73, 74}) {
    const auto x = Random(static_cast<size_t>(rows * inner), 26);
    auto values = Random(static_cast<size_t>(out * inner), 27);
    const auto same = [&](const void* w, WeightType type) {
      return Product(*kernels_, x, rows, inner, w, type, out) ==
             Product(plain, x, rows, inner, w, type, out);
    };
    EXPECT_TRUE(same(values.data(), WeightType::kF32)) << inner;
    const auto w = Bf16(&values);
    EXPECT_EQ(same(w.data(), WeightType::kBF16), inner == 73) << inner;
    const std::vector<uint16_t> halves(static_cast<size_t>(out * inner), 0x3555);
    EXPECT_TRUE(same(halves.data(), WeightType::kF16)) << inner;
  }
}

TEST_F(Bf16ProductsTest, WhatIsNotFiniteStaysSo) {
  const int64_t inner = 64, out = 5;
  std::vector<float> values(static_cast<size_t>(out * inner), 1);
  const auto w = Bf16(&values);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    for (const int64_t rows : {1, 20}) {
      auto x = Random(static_cast<size_t>(rows * inner), 28);
      x[static_cast<size_t>((rows - 1) * inner + 37)] = bad;
      const auto y = Product(*kernels_, x, rows, inner, w.data(), WeightType::kBF16, out);
      for (int64_t n = 0; n < out; ++n) {
        ASSERT_FALSE(std::isfinite(y[static_cast<size_t>((rows - 1) * out + n)])) << bad;
        ASSERT_TRUE(rows == 1 || std::isfinite(y[static_cast<size_t>(n)])) << bad;
      }
    }
  }
}

TEST(SelectKernelsTest, RoundsOnlyWhereItIsAskedTo) {
  EXPECT_STRNE(SelectKernels("auto").name, "avx512_bf16");
  for (const std::string& name : AvailableKernels()) EXPECT_NE(name, "avx512_bf16");
}

}  // namespace
}  // namespace evald::native
