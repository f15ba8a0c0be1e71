// AnswerRows: log-probabilities, the likeliest token, and the same sampling as sampler.cc.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/unit/cuda/kernels_test_util.h"
#include "worker/native/cuda/kernels.h"
#include "worker/native/sampler.h"

namespace evald::native::cuda {
namespace {

class AnswerTest : public KernelTest {
 protected:
  std::vector<DeviceAnswer> Answers(const std::vector<float>& logits, int64_t vocab,
                                    const std::vector<DeviceWish>& wishes, int64_t shift = 0) {
    const auto rows = static_cast<int64_t>(wishes.size());
    const Values<float> device_logits(logits, shift);
    const Values<DeviceWish> device_wishes(wishes);
    const Values<DeviceAnswer> answers(rows);
    const Guarded scratch(static_cast<int64_t>(AnswerScratchBytes(rows, vocab)));
    AnswerRows(
        {device_logits.data(), rows, vocab, device_wishes.data(), answers.data(), scratch.data()},
        stream());
    scratch.Bytes();  // checks the guards
    EXPECT_EQ(
        std::memcmp(device_logits.Read().data(), logits.data(), logits.size() * sizeof(float)), 0)
        << "logits are only read";
    return answers.Read();
  }

  static DeviceWish Target(int64_t token) {
    DeviceWish wish;
    wish.target = static_cast<int32_t>(token);
    return wish;
  }
};

TEST_F(AnswerTest, TargetsAgainstLongDoubles) {
  for (const int64_t vocab : {1, 5, 257, 4096, 4104, 12289}) {
    for (const int64_t shift : {0, 1}) {
      const int64_t rows = 4;
      const std::vector<float> logits = Normals(rows * vocab, 4);
      std::vector<DeviceWish> wishes;
      for (int64_t row = 0; row < rows; ++row) wishes.push_back(Target(Below(vocab)));
      const std::vector<DeviceAnswer> answers = Answers(logits, vocab, wishes, shift);
      for (size_t row = 0; row < wishes.size(); ++row) {
        const float* x = logits.data() + static_cast<int64_t>(row) * vocab;
        const float* largest = std::max_element(x, x + vocab);
        long double total = 0;
        for (int64_t i = 0; i < vocab; ++i) {
          total += std::exp(static_cast<long double>(x[i]) - *largest);
        }
        const auto expected = static_cast<double>(static_cast<long double>(x[wishes[row].target]) -
                                                  *largest - std::log(total));
        EXPECT_EQ(answers[row].defined, 1);
        EXPECT_EQ(answers[row].token, largest - x);
        // Each exponential and each addition of the sum has an error of 2^-53. The parts have one
        // of at most 2^-50.
        EXPECT_NEAR(answers[row].log_probability, expected, 1e-12) << vocab;
      }
    }
  }
}

TEST_F(AnswerTest, TheFirstOfTheLargest) {
  for (const int64_t vocab : {2, 300, 4096, 9001}) {
    for (int round = 0; round < 8; ++round) {
      std::vector<float> logits = Normals(vocab, 2);
      std::vector<int64_t> places;
      for (int i = 0; i < 3; ++i) {
        places.push_back(Below(vocab));
        logits[static_cast<size_t>(places.back())] = 100;
      }
      const auto answers = Answers(logits, vocab, {DeviceWish{}});
      EXPECT_EQ(answers[0].token, *std::min_element(places.begin(), places.end()));
      EXPECT_EQ(answers[0].log_probability, 0);
    }
  }
}

// As in torch: log_softmax of a row with NaN or plus infinity is NaN throughout (and the argmax of
// that is 0). The argmax of the logits is the first NaN. Minus infinity is an ordinary logit.
TEST_F(AnswerTest, RowsThatAreNotFinite) {
  const int64_t vocab = 5001, place = 4321;
  const float low = -HUGE_VALF, high = HUGE_VALF;
  struct Case {
    std::vector<std::pair<int64_t, float>> values;
    bool defined;
    int32_t token;
  };
  const std::vector<Case> cases = {
      {{{place, NAN}, {place + 1, NAN}}, false, place}, {{{place, -NAN}}, false, place},
      {{{place, high}, {7, high}}, false, 7},           {{{7, high}, {place, NAN}}, false, place},
      {{{place, 50}, {7, low}, {1, low}}, true, place}, {{{place, 50}}, true, place}};
  const auto rows = static_cast<int64_t>(cases.size());
  std::vector<float> logits = Normals(rows * vocab);
  for (int64_t row = 0; row < rows; ++row) {
    for (const auto& [at, value] : cases[static_cast<size_t>(row)].values) {
      logits[static_cast<size_t>(row * vocab + at)] = value;
    }
  }
  const auto greedy = Answers(logits, vocab, std::vector<DeviceWish>(cases.size()));
  const auto scored = Answers(logits, vocab, std::vector<DeviceWish>(cases.size(), Target(1)));
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(greedy[i].defined, cases[i].defined ? 1 : 0) << i;
    EXPECT_EQ(greedy[i].token, cases[i].token) << i;
    EXPECT_EQ(scored[i].defined, cases[i].defined ? 1 : 0) << i;
    EXPECT_EQ(scored[i].token, cases[i].defined ? place : 0) << i;
    EXPECT_EQ(std::isnan(scored[i].log_probability), !cases[i].defined) << i;
  }
  EXPECT_EQ(scored[4].log_probability, -HUGE_VAL);
  EXPECT_TRUE(std::isfinite(scored[5].log_probability));
}

// Long stretches of minus infinity, as from a suppressed part of the vocabulary.
TEST_F(AnswerTest, MinusInfinityHasNoShare) {
  const int64_t vocab = 9000, kept = 8100;
  std::vector<float> logits(static_cast<size_t>(2 * vocab), -HUGE_VALF);
  for (int64_t i = kept; i < kept + 4; ++i) logits[static_cast<size_t>(i)] = 1;
  DeviceWish sampled;
  sampled.sample = 1;
  sampled.uniform = 0.6;
  EXPECT_NEAR(Answers(logits, vocab, {Target(kept), Target(0)})[0].log_probability, std::log(0.25),
              1e-12);
  EXPECT_EQ(Answers(logits, vocab, {sampled, sampled})[0].token, kept + 2);
  const auto none = Answers(logits, vocab, {DeviceWish{}, DeviceWish{}})[1];
  EXPECT_EQ(none.defined, 0);
  EXPECT_EQ(none.token, 0);
}

TEST_F(AnswerTest, RowsDoNotDependOnTheirBatch) {
  const int64_t vocab = 9000, rows = 6;
  const std::vector<float> logits = Normals(rows * vocab, 3);
  std::vector<DeviceWish> wishes;
  for (int64_t row = 0; row < rows; ++row) {
    DeviceWish wish = Target(row % 2 == 0 ? Below(vocab) : -1);
    wish.sample = 1;  // sampled if there is no target
    wish.top_p = 0.9;
    wish.uniform = Uniform();
    wishes.push_back(wish);
  }
  const auto all = Answers(logits, vocab, wishes);
  for (int64_t row = 0; row < rows; ++row) {
    const auto one = Answers({logits.begin() + row * vocab, logits.begin() + (row + 1) * vocab},
                             vocab, {wishes[static_cast<size_t>(row)]});
    EXPECT_EQ(one[0].token, all[static_cast<size_t>(row)].token);
    EXPECT_EQ(one[0].log_probability, all[static_cast<size_t>(row)].log_probability);
  }
}

class SampleTest : public AnswerTest {
 protected:
  // Logits of four kinds: spread, with many equal ones, peaked, all equal.
  std::vector<float> Row(int kind, int64_t vocab) {
    std::vector<float> row = Normals(vocab, kind == 2 ? 15 : 3);
    if (kind == 1) {
      for (float& x : row) x = std::round(x * 2) / 2;  // -0 occurs too
    }
    if (kind == 3) std::fill(row.begin(), row.end(), row[0]);
    return row;
  }

  template <typename T>
  T OneOf(const std::vector<T>& values) {
    return values[static_cast<size_t>(Below(static_cast<int64_t>(values.size())))];
  }

  DeviceWish Wish(int kind, int64_t vocab) {
    DeviceWish wish;
    wish.sample = 1;
    wish.temperature = OneOf<double>({1, 1, 0.7, 1.5, 1e-3, 100, 1e6});
    wish.top_k = OneOf<int32_t>(
        {0, 0, 1, 2, 5, 40, static_cast<int32_t>(vocab), static_cast<int32_t>(vocab) + 5});
    wish.top_p = OneOf<double>({1, 1, 0.95, 0.9, 0.5, 0.1, 1e-9, 0});
    // The last bit of a sum decides a draw on the edge between two tokens. Such draws are exact
    // only if all logits are equal.
    wish.uniform = kind == 3 ? OneOf<double>({0, 0.25, 0.5, 1 - 0x1p-53}) : Uniform();
    return wish;
  }

  void Check(int64_t rows, int64_t vocab) {
    std::vector<float> logits;
    std::vector<DeviceWish> wishes;
    for (int64_t row = 0; row < rows; ++row) {
      const auto kind = static_cast<int>(Below(4));
      const std::vector<float> more = Row(kind, vocab);
      logits.insert(logits.end(), more.begin(), more.end());
      wishes.push_back(Wish(kind, vocab));
    }
    const auto answers = Answers(logits, vocab, wishes);
    for (int64_t row = 0; row < rows; ++row) {
      const DeviceWish& wish = wishes[static_cast<size_t>(row)];
      ASSERT_EQ(answers[static_cast<size_t>(row)].token,
                SampledByCpu(logits.data() + row * vocab, vocab, wish))
          << "vocab " << vocab << " row " << row << " temperature " << wish.temperature << " top_k "
          << wish.top_k << " top_p " << wish.top_p << " uniform " << wish.uniform;
    }
  }

  static int32_t SampledByCpu(const float* logits, int64_t vocab, const DeviceWish& wish) {
    GenerationSettings sampling;
    sampling.do_sample = true;
    sampling.temperature = wish.temperature;
    sampling.top_k = wish.top_k;
    sampling.top_p = wish.top_p;
    return Sample(logits, vocab, sampling, wish.uniform);
  }
};

TEST_F(SampleTest, AsTheCpuOnManyRows) {
  for (const int64_t vocab : {1, 2, 3}) Check(30, vocab);
  for (const int64_t vocab : {8, 17, 64, 300}) Check(200, vocab);
  for (const int64_t vocab : {2048, 4097}) Check(60, vocab);
  for (const int64_t vocab : {9000, 20001}) Check(12, vocab);
}

// Top-k and top-p make their cut among zeros of both signs, which are equal.
TEST_F(SampleTest, BothZerosAreEqual) {
  const int64_t vocab = 20, rows = 60;
  std::vector<float> logits;
  std::vector<DeviceWish> wishes;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < vocab; ++i) {
      logits.push_back(OneOf<float>({0.0f, -0.0f, 0.0f, -0.0f, -1.5f, 1.5f}));
    }
    DeviceWish wish;
    wish.sample = 1;
    wish.top_k = row % 2 == 0 ? static_cast<int32_t>(4 + Below(4)) : 0;
    wish.top_p = row % 2 == 0 ? 1 : 0.8;
    wish.uniform = Uniform();
    wishes.push_back(wish);
  }
  const auto answers = Answers(logits, vocab, wishes);
  for (int64_t row = 0; row < rows; ++row) {
    const auto i = static_cast<size_t>(row);
    EXPECT_EQ(answers[i].token, SampledByCpu(logits.data() + row * vocab, vocab, wishes[i]));
  }
}

// Draws and top-p cuts at a distance of 1e-11 of the whole mass from an edge fall on the right
// side.
TEST_F(SampleTest, SumsOfMassesAreExact) {
  const int64_t vocab = 300, rows = 120;
  std::vector<float> logits;
  std::vector<DeviceWish> wishes;
  std::vector<int32_t> expected;
  for (int64_t row = 0; row < rows; ++row) {
    const std::vector<float> x = Normals(vocab, 2);
    logits.insert(logits.end(), x.begin(), x.end());
    const double beside = row % 2 == 0 ? 1e-11 : -1e-11;
    const auto edge = static_cast<size_t>(Below(vocab - 1));
    long double upto = 0, below = 0, total = 0;  // token `edge` by id; token 0 by size
    for (size_t i = 0; i < x.size(); ++i) {
      const long double mass = std::exp(static_cast<long double>(x[i]));
      total += mass;
      if (i <= edge) upto += mass;
      if (x[i] <= x[0]) below += mass;
    }
    DeviceWish wish;
    wish.sample = 1;
    if (row % 4 < 2) {
      wish.uniform = static_cast<double>(upto / total) + beside;
      expected.push_back(static_cast<int32_t>(edge) + (beside > 0 ? 1 : 0));
    } else {
      wish.top_p = 1 - (static_cast<double>(below / total) + beside);
      const bool drops = beside > 0 && *std::max_element(x.begin(), x.end()) > x[0];
      const auto first = std::find_if(x.begin(), x.end(), [&](float y) { return y > x[0]; });
      expected.push_back(drops ? static_cast<int32_t>(first - x.begin()) : 0);
    }
    wishes.push_back(wish);
  }
  const auto answers = Answers(logits, vocab, wishes);
  for (size_t row = 0; row < expected.size(); ++row) {
    EXPECT_EQ(answers[row].token, expected[row]) << "row " << row;
  }
}

// Every token is drawn with its probability, over a grid of draws.
TEST_F(SampleTest, AsTheCpuOverTheWholeRangeOfDraws) {
  const int64_t vocab = 40, rows = 150;
  const std::vector<float> one = Normals(vocab, 2);
  std::vector<float> logits;
  std::vector<DeviceWish> wishes;
  for (int64_t row = 0; row < rows; ++row) {
    logits.insert(logits.end(), one.begin(), one.end());
    DeviceWish wish;
    wish.sample = 1;
    wish.temperature = 1.3;
    wish.top_k = 30;
    wish.top_p = 0.97;
    wish.uniform = (static_cast<double>(row) + Uniform()) / static_cast<double>(rows);
    wishes.push_back(wish);
  }
  const auto answers = Answers(logits, vocab, wishes);
  int32_t last = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const auto i = static_cast<size_t>(row);
    EXPECT_EQ(answers[i].token, SampledByCpu(one.data(), vocab, wishes[i]));
    EXPECT_GE(answers[i].token, last) << "tokens come in order of id";
    last = answers[i].token;
  }
}

}  // namespace
}  // namespace evald::native::cuda
