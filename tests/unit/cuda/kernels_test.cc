// Kernels that handle one row, or one element, at a time. Outputs are NaN at first and lie between
// guards (Guarded).
#include "worker/native/cuda/kernels.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/unit/cuda/kernels_test_util.h"
#include "worker/native/device.h"

namespace evald::native::cuda {
namespace {

// Whole vectors, odd ends, and more than one block's stretch.
const std::vector<int64_t> kWidths = {1, 7, 8, 24, 37, 2048, 2056, 4099};

class EmbedTest : public KernelTest {};

TEST_F(EmbedTest, GivesTheTokensRows) {
  const int64_t vocab = 9;
  const std::vector<int32_t> ids = {3, 0, 8, 3, 5};
  // Two tokens are taken from answers.
  const Values<int32_t> tokens({3, TokenOfAnswer(1), 8, 3, TokenOfAnswer(2)});
  const Values<DeviceAnswer> answers({{7, 1, 0}, {0, 1, 0}, {5, 1, 0}});
  for (const WeightType type : kTypes) {
    for (const int64_t width : kWidths) {
      for (const int64_t shift : {0, 1}) {
        const Numbers embedding(type, Normals(vocab * width), shift);
        const Values<float> out(static_cast<int64_t>(ids.size()) * width);
        Embed({type, embedding.data(), tokens.data(), answers.data(),
               static_cast<int64_t>(ids.size()), width, out.data()},
              stream());
        const std::vector<float> got = out.Read();
        for (size_t i = 0; i < got.size(); ++i) {
          const auto place = static_cast<int64_t>(i);
          ASSERT_EQ(got[i],
                    embedding.at(ids[i / static_cast<size_t>(width)] * width + place % width))
              << NameOf(type) << " " << width << " " << i;
        }
      }
    }
  }
}

// Up to 4096, 8192 and 16384 numbers are kept in registers. More numbers are read again.
const std::vector<int64_t> kNormWidths = {1,    2,    5,    8,    33,    264,   4096,
                                          4099, 5128, 8200, 9000, 16400, 16401, 20000};

class NormTest : public KernelTest {
 protected:
  struct Case {
    NormKind kind;
    int64_t width;
    WeightType type;
    bool addend, bias;
  };

  void Check(const Case& c, int64_t shift) {
    SCOPED_TRACE(testing::Message()
                 << NameOf(c.type) << (c.kind == NormKind::kRms ? " rms" : " layer") << " width "
                 << c.width << " shift " << shift);
    const int64_t rows = 3;
    std::vector<float> sums = Normals(rows * c.width);
    for (float& sum : sums) sum += 0.5f;
    const Values<float> x(sums, shift);
    const Values<float> addend(Normals(rows * c.width), shift);
    const std::vector<float> weight = Normals(c.width), bias = Normals(c.width);
    const Values<float> device_weight(weight, shift), device_bias(bias, shift);
    const Numbers out(c.type, rows * c.width, shift);
    if (c.addend) {
      const std::vector<float> more = addend.Read();
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += more[i];
    }
    NormArgs args{};
    args.kind = c.kind;
    args.eps = kEps;
    args.weight = device_weight.data();
    args.bias = c.bias ? device_bias.data() : nullptr;
    args.x = x.data();
    args.addend = c.addend ? addend.data() : nullptr;
    args.rows = rows;
    args.width = c.width;
    args.out = out.data();
    args.out_type = c.type;
    Normalize(args, stream());
    EXPECT_EQ(x.Read(), sums) << "x is the sum, rounded once";
    const std::vector<double> got = out.Read();
    for (int64_t row = 0; row < rows; ++row) {
      const auto begin = got.begin() + row * c.width;
      ExpectRow(c, sums.data() + row * c.width, weight, c.bias ? &bias : nullptr,
                {begin, begin + c.width});
    }
  }

  // In a sum in fp32, no number passes through more than 100 additions.
  void ExpectRow(const Case& c, const float* x, const std::vector<float>& weight,
                 const std::vector<float>* bias, const std::vector<double>& got) {
    const auto width = static_cast<double>(c.width);
    double mean = 0, squares = 0, largest = 0;
    for (int64_t i = 0; i < c.width; ++i) {
      mean += c.kind == NormKind::kLayer ? x[i] / width : 0;
      largest = std::max(largest, std::fabs(static_cast<double>(x[i])));
    }
    for (int64_t i = 0; i < c.width; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const double factor = 1 / std::sqrt(squares / width + kEps);
    ExpectNear(c.type, got, [&](int64_t i) -> Expected {
      const double w = weight[static_cast<size_t>(i)];
      const double b = bias == nullptr ? 0 : (*bias)[static_cast<size_t>(i)];
      const double value = (x[i] - mean) * factor * w;
      double error = 100 * kUnit * std::fabs(value);
      if (c.kind == NormKind::kLayer) {  // the error of the mean affects value and deviation
        error = 200 * kUnit * largest * factor * std::fabs(w) * (1 + largest * factor);
      }
      return {value + b, error + 2 * kUnit * std::fabs(b)};
    });
  }

  static constexpr float kEps = 1e-5f;
};

TEST_F(NormTest, AgainstDoubles) {
  int n = 0;
  for (const int64_t width : kNormWidths) {
    for (const WeightType type : kTypes) {
      for (const NormKind kind : {NormKind::kRms, NormKind::kLayer}) {
        ++n;
        Check({kind, width, type, n % 2 == 0, n % 3 == 0}, n % 5 == 0 ? 1 : 0);
      }
    }
  }
}

TEST_F(NormTest, XMayBeTheOutput) {
  for (const int64_t width : {40, 8200, 20000}) {
    const std::vector<float> values = Normals(2 * width), more = Normals(2 * width);
    const Values<float> addend(more), weight(Normals(width));
    const Values<float> x(values), apart(values), out(2 * width);
    NormArgs args{NormKind::kLayer, 1e-5f, weight.data(), nullptr,    apart.data(),
                  addend.data(),    2,     width,         out.data(), WeightType::kF32};
    Normalize(args, stream());
    args.x = x.data();
    args.out = x.data();
    Normalize(args, stream());
    EXPECT_EQ(x.Read(), out.Read());
  }
}

TEST_F(NormTest, OnlyTheSum) {
  const int64_t width = 37;
  std::vector<float> sums = Normals(2 * width);
  const std::vector<float> more = Normals(2 * width);
  const Values<float> x(sums), addend(more);
  Normalize({NormKind::kRms, 1e-5f, nullptr, nullptr, x.data(), addend.data(), 2, width, nullptr,
             WeightType::kBF16},
            stream());
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += more[i];
  EXPECT_EQ(x.Read(), sums);
}

TEST_F(NormTest, RowsDoNotDependOnTheirBatch) {
  for (const int64_t width : {33, 4096, 9000, 20000}) {
    for (const WeightType type : kTypes) {
      const int64_t rows = 5;
      const std::vector<float> values = Normals(rows * width);
      const Values<float> weight(Normals(width)), x(values);
      const Numbers out(type, rows * width);
      NormArgs args{NormKind::kLayer, 1e-5f, weight.data(), nullptr,    x.data(),
                    nullptr,          rows,  width,         out.data(), type};
      Normalize(args, stream());
      const std::vector<char> all = out.Bytes();
      for (int64_t row = 0; row < rows; ++row) {
        const Values<float> one({values.begin() + row * width, values.begin() + (row + 1) * width});
        const Numbers out_of_one(type, width);
        args.x = one.data();
        args.rows = 1;
        args.out = out_of_one.data();
        Normalize(args, stream());
        const auto begin = all.begin() + row * width * BytesOf(type);
        EXPECT_EQ(out_of_one.Bytes(), std::vector<char>(begin, begin + width * BytesOf(type)));
      }
    }
  }
}

class RowsTest : public KernelTest {};

TEST_F(RowsTest, AddBiasRoundsTheSum) {
  const int64_t rows = 3;
  for (const WeightType type : kTypes) {
    for (const int64_t width : kWidths) {
      const Numbers y(type, Normals(rows * width), width % 3);
      const std::vector<float> values = Normals(width);
      const Values<float> bias(values);
      AddBias(type, y.data(), bias.data(), rows, width, stream());
      const std::vector<double> got = y.Read();
      for (size_t i = 0; i < got.size(); ++i) {
        const double sum = Rounded(WeightType::kF32, y.at(static_cast<int64_t>(i)) +
                                                         values[i % static_cast<size_t>(width)]);
        ASSERT_EQ(got[i], Rounded(type, sum)) << NameOf(type) << " " << width << " " << i;
      }
    }
  }
}

TEST_F(RowsTest, AddRoundsOnce) {
  for (const int64_t count : {1, 8, 24576, 30001}) {
    std::vector<float> sums = Normals(count);
    const std::vector<float> more = Normals(count);
    const Values<float> x(sums), y(more);
    Add(x.data(), y.data(), count, stream());
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += more[i];
    EXPECT_EQ(x.Read(), sums);
  }
}

TEST_F(RowsTest, NarrowRoundsTheSum) {
  for (const WeightType type : kTypes) {
    for (const int64_t count : {1, 8, 4099, 8192}) {
      for (const bool added : {false, true}) {
        std::vector<float> sums = Normals(count);
        const std::vector<float> more = Normals(count);
        const Values<float> x(sums), addend(more);
        const Numbers out(type, count);
        Narrow(type, x.data(), added ? addend.data() : nullptr, count, out.data(), stream());
        for (size_t i = 0; i < sums.size() && added; ++i) sums[i] += more[i];
        EXPECT_EQ(x.Read(), sums);
        const std::vector<double> got = out.Read();
        for (size_t i = 0; i < got.size(); ++i) {
          ASSERT_EQ(got[i], Rounded(type, sums[i])) << NameOf(type) << " " << i;
        }
      }
    }
  }
}

TEST_F(RowsTest, GatherCopiesRowsAndLeavesPaddingAlone) {
  const std::vector<int32_t> rows = {4, 0, -1, 4, 2};
  const Values<int32_t> index(rows);
  for (const int64_t bytes : {2, 6, 16, 48, 4098, 8208}) {
    for (const int64_t shift : {0, 2}) {
      std::vector<char> values(static_cast<size_t>(5 * bytes));
      for (char& c : values) c = static_cast<char>(Below(256));
      const Guarded out(5 * bytes, shift);
      Guarded in(5 * bytes, shift);
      in.Write(values.data());
      GatherRows(in.data(), index.data(), 5, bytes, out.data(), stream());
      std::vector<char> expected(values.size(), '\xFF');
      for (size_t i = 0; i < rows.size(); ++i) {
        if (rows[i] < 0) continue;
        std::copy_n(values.begin() + rows[i] * bytes, bytes,
                    expected.begin() + static_cast<int64_t>(i) * bytes);
      }
      EXPECT_EQ(out.Bytes(), expected) << bytes << " " << shift;
    }
  }
}

class ActivateTest : public KernelTest {
 protected:
  // The function, and the error that fp32 may have for an argument that has itself the error
  // `error`.
  static Expected Of(Activation activation, double x, double error) {
    const double y = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
    const double value = activation == Activation::kSilu   ? x / (1 + std::exp(-x))
                         : activation == Activation::kGelu ? x * std::erfc(-x / M_SQRT2) / 2
                                                           : x / (1 + std::exp(-2 * y));
    // If the exponential is small, its relative error is the absolute error of its argument.
    const double exponent = activation == Activation::kSilu   ? std::fabs(x)
                            : activation == Activation::kGelu ? x * x
                                                              : 2 * std::fabs(y);
    const double relative = (16 + 8 * exponent) * kUnit;
    return {value, relative * std::fabs(value) + 1.2 * error + 1e-36};
  }
};

TEST_F(ActivateTest, AgainstDoubles) {
  const int64_t rows = 3;
  int n = 0;
  for (const WeightType type : kTypes) {
    for (const Activation activation :
         {Activation::kSilu, Activation::kGelu, Activation::kGeluTanh}) {
      for (const bool gated : {false, true}) {
        for (const int64_t width : kWidths) {
          const int64_t inputs = gated ? 2 * width : width;
          const bool biased = ++n % 3 == 0;
          SCOPED_TRACE(testing::Message()
                       << NameOf(type) << " activation " << static_cast<int>(activation)
                       << " gated " << gated << " width " << width << " biased " << biased);
          const Numbers in(type, Normals(rows * inputs, 3), n % 2);
          const std::vector<float> biases = Normals(inputs);
          const Values<float> bias(biases);
          const Numbers out(type, rows * width);
          Activate({type, activation, gated, in.data(), biased ? bias.data() : nullptr, rows, width,
                    out.data()},
                   stream());
          const auto input = [&](int64_t row, int64_t i) -> Expected {
            const double x = in.at(row * inputs + i);
            if (!biased) return {x, 0};
            const double b = biases[static_cast<size_t>(i)];
            return {x + b, kUnit * std::fabs(x + b)};
          };
          ExpectNear(type, out.Read(), [&](int64_t i) {
            const Expected x = input(i / width, i % width);
            Expected result = Of(activation, x.value, x.error);
            if (!gated) return result;
            const Expected factor = input(i / width, width + i % width);
            result.error =
                result.error * std::fabs(factor.value) +
                std::fabs(result.value) * (factor.error + kUnit * std::fabs(factor.value));
            result.value *= factor.value;
            return result;
          });
        }
      }
    }
  }
}

class RouteTest : public KernelTest {
 protected:
  void Check(WeightType type, int64_t experts, int64_t per_token, bool normalize) {
    SCOPED_TRACE(testing::Message() << NameOf(type) << " " << per_token << " of " << experts);
    const int64_t rows = 9;
    std::vector<float> values = Normals(rows * experts, 2);
    for (float& value : values) value = std::round(value * 4) / 4;  // makes equal numbers
    const std::vector<float> bad = {NAN, HUGE_VALF, -HUGE_VALF};
    for (size_t i = 0; i < bad.size(); ++i) {
      values[i * static_cast<size_t>(experts) + static_cast<size_t>(Below(experts))] = bad[i];
    }
    const Numbers logits(type, values);
    const Values<int32_t> expert(rows * per_token);
    const Values<float> weight(rows * per_token);
    Route({type, logits.data(), rows, experts, per_token, normalize, expert.data(), weight.data()},
          stream());
    const std::vector<int32_t> got = expert.Read();
    const std::vector<float> weights = weight.Read();
    for (int64_t row = 0; row < rows; ++row) {
      const auto first = static_cast<size_t>(row * per_token);
      const std::vector<Expected> all = Softmax(logits, row * experts, experts);
      std::vector<int32_t> order(static_cast<size_t>(experts));
      std::iota(order.begin(), order.end(), 0);
      if (row >= static_cast<int64_t>(bad.size())) {
        std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
          return logits.at(row * experts + a) > logits.at(row * experts + b);
        });
      }
      double kept = 0;
      for (int64_t i = 0; i < per_token; ++i) {
        kept += all[static_cast<size_t>(order[static_cast<size_t>(i)])].value;
      }
      for (size_t i = 0; i < static_cast<size_t>(per_token); ++i) {
        EXPECT_EQ(got[first + i], order[i]);
        if (row < static_cast<int64_t>(bad.size())) {
          EXPECT_TRUE(std::isnan(weights[first + i]));
          continue;
        }
        const auto [value, error] = all[static_cast<size_t>(order[i])];
        const double expected = normalize ? value / kept : value;
        EXPECT_NEAR(weights[first + i], expected, error / value * expected);
      }
    }
  }

  static std::vector<Expected> Softmax(const Numbers& logits, int64_t begin, int64_t count) {
    double top = -HUGE_VAL, total = 0;
    for (int64_t i = 0; i < count; ++i) top = std::max(top, logits.at(begin + i));
    for (int64_t i = 0; i < count; ++i) total += std::exp(logits.at(begin + i) - top);
    std::vector<Expected> shares;
    for (int64_t i = 0; i < count; ++i) {
      const double value = std::exp(logits.at(begin + i) - top) / total;
      shares.push_back({value, 128 * kUnit * value});
    }
    return shares;
  }
};

TEST_F(RouteTest, TheLargestOfTheSoftmax) {
  bool normalize = false;
  for (const WeightType type : kTypes) {
    for (const auto& [experts, per_token] : std::vector<std::pair<int64_t, int64_t>>{
             {1, 1}, {2, 2}, {8, 2}, {33, 5}, {60, 4}, {128, 8}}) {
      Check(type, experts, per_token, normalize = !normalize);
    }
  }
}

TEST_F(RowsTest, NoRowsNothingHappens) {
  Embed({WeightType::kBF16, nullptr, nullptr, nullptr, 0, 8, nullptr}, stream());
  Normalize(
      {NormKind::kRms, 1e-5f, nullptr, nullptr, nullptr, nullptr, 0, 8, nullptr, WeightType::kBF16},
      stream());
  AddBias(WeightType::kBF16, nullptr, nullptr, 0, 8, stream());
  Add(nullptr, nullptr, 0, stream());
  Activate({WeightType::kBF16, Activation::kSilu, true, nullptr, nullptr, 0, 8, nullptr}, stream());
  GatherRows(nullptr, nullptr, 0, 16, nullptr, stream());
  Route({WeightType::kBF16, nullptr, 0, 8, 2, false, nullptr, nullptr}, stream());
  PrepareHeads({}, stream());
  AnswerRows({}, stream());
}

}  // namespace
}  // namespace evald::native::cuda
