// The kernels of mixtures of experts: grouping, the product over all experts, the weighted sum.
#include <algorithm>
#include <cmath>

#include "tests/unit/cuda/kernels_test_util.h"

namespace evald::native::cuda {
namespace {

class ExpertsTest : public KernelTest {
 protected:
  // Choices like a router's. A row has each expert at most once; `favoured` experts come first.
  std::vector<int32_t> Choices(int64_t rows, int64_t experts, int64_t per_token,
                               int64_t favoured = 0) {
    std::vector<int32_t> choices;
    for (int64_t row = 0; row < rows; ++row) {
      std::vector<int32_t> order(static_cast<size_t>(experts));
      for (size_t e = 0; e < order.size(); ++e) order[e] = static_cast<int32_t>(e);
      for (size_t e = static_cast<size_t>(favoured); e < order.size(); ++e) {
        const auto left = static_cast<int64_t>(order.size() - e);
        std::swap(order[e], order[e + static_cast<size_t>(Below(left))]);
      }
      choices.insert(choices.end(), order.begin(), order.begin() + per_token);
    }
    return choices;
  }

  struct Groups {
    Groups(const std::vector<int32_t>& choices, int64_t experts, int64_t per_token)
        : expert(choices),
          begin(experts + 1),
          row(static_cast<int64_t>(choices.size())),
          slot(static_cast<int64_t>(choices.size())) {
      const auto rows = static_cast<int64_t>(choices.size()) / per_token;
      GroupByExpert(
          {expert.data(), rows, experts, per_token, begin.data(), row.data(), slot.data()},
          stream());
    }
    Values<int32_t> expert, begin, row, slot;
  };

  struct Shape {
    int64_t experts, outputs, inputs;
  };

  // The products of each slot. Its rows are those of `x`.
  Numbers Multiply(WeightType type, WeightType y_type, const Shape& shape, const Numbers& weights,
                   const Numbers& x, const Groups& groups, int64_t slots, bool by_slot) {
    Numbers y(y_type, slots * shape.outputs);
    const int64_t stride = shape.outputs * shape.inputs * BytesOf(type);
    MultiplyExperts({type, weights.data(), static_cast<uint64_t>(stride), groups.begin.data(),
                     shape.experts, slots, x.data(), by_slot ? nullptr : groups.row.data(),
                     shape.outputs, shape.inputs, y_type, y.data()},
                    stream());
    return y;
  }

  void CheckProduct(WeightType type, WeightType y_type, const Shape& shape,
                    const std::vector<int32_t>& choices, int64_t per_token, bool by_slot) {
    SCOPED_TRACE(testing::Message()
                 << NameOf(type) << " to " << NameOf(y_type) << ", " << shape.experts
                 << " experts of " << shape.outputs << " x " << shape.inputs << ", "
                 << choices.size() << " slots" << (by_slot ? ", rows by slot" : ""));
    const auto slots = static_cast<int64_t>(choices.size());
    const Numbers weights(type, Normals(shape.experts * shape.outputs * shape.inputs));
    const Numbers x(type, Normals((by_slot ? slots : slots / per_token) * shape.inputs));
    const Groups groups(choices, shape.experts, per_token);
    const Numbers y = Multiply(type, y_type, shape, weights, x, groups, slots, by_slot);
    const std::vector<int32_t> slot_of = groups.slot.Read();
    std::vector<int64_t> choice_of(choices.size());
    for (size_t i = 0; i < choices.size(); ++i) {
      choice_of[static_cast<size_t>(slot_of[i])] = static_cast<int64_t>(i);
    }
    // No number passes through more additions than the sum has.
    const double relative = static_cast<double>(shape.inputs + 1) * kUnit;
    ExpectNear(y_type, y.Read(), [&](int64_t at) -> Expected {
      const int64_t slot = at / shape.outputs, output = at % shape.outputs;
      const int64_t choice = choice_of[static_cast<size_t>(slot)];
      const int64_t row = by_slot ? slot : choice / per_token;
      const int64_t expert = choices[static_cast<size_t>(choice)];
      double sum = 0, sizes = 0;
      for (int64_t k = 0; k < shape.inputs; ++k) {
        const double term = x.at(row * shape.inputs + k) *
                            weights.at((expert * shape.outputs + output) * shape.inputs + k);
        sum += term;
        sizes += std::fabs(term);
      }
      return {sum, relative * sizes};
    });
  }
};

TEST_F(ExpertsTest, SlotsAreInOrderOfExpertsAndRows) {
  struct Case {
    int64_t rows, experts, per_token, favoured;
  };
  for (const auto& [rows, experts, per_token, favoured] : std::vector<Case>{{1, 1, 1, 0},
                                                                            {1, 8, 2, 0},
                                                                            {5, 33, 5, 3},
                                                                            {31, 128, 8, 0},
                                                                            {300, 4, 2, 0},
                                                                            {257, 60, 4, 4}}) {
    SCOPED_TRACE(testing::Message() << rows << " rows, " << per_token << " of " << experts);
    const std::vector<int32_t> choices = Choices(rows, experts, per_token, favoured);
    const Groups groups(choices, experts, per_token);
    std::vector<int32_t> begin = {0}, row, slot(choices.size());
    for (int32_t e = 0; e < experts; ++e) {
      for (size_t i = 0; i < choices.size(); ++i) {
        if (choices[i] != e) continue;
        slot[i] = static_cast<int32_t>(row.size());
        row.push_back(static_cast<int32_t>(i / static_cast<size_t>(per_token)));
      }
      begin.push_back(static_cast<int32_t>(row.size()));
    }
    EXPECT_EQ(groups.begin.Read(), begin);
    EXPECT_EQ(groups.row.Read(), row);
    EXPECT_EQ(groups.slot.Read(), slot);
  }
}

// Depths that are no whole number of slots or pieces; outputs that are odd or more than a tile's;
// experts without rows and with more rows than a tile. There are so many rows that each size of
// tile occurs.
TEST_F(ExpertsTest, ProductsAgainstDoubles) {
  bool by_slot = false;
  for (const WeightType type : kTypes) {
    for (const Shape& shape : std::vector<Shape>{
             {1, 1, 1}, {3, 7, 8}, {4, 130, 72}, {40, 34, 200}, {5, 129, 37}, {2, 16, 344}}) {
      for (const int64_t rows : {1, 9, 70}) {
        const int64_t per_token = std::min<int64_t>(shape.experts, 2);
        const int64_t favoured = rows == 70 && shape.experts > 2 ? 1 : 0;
        const auto choices = Choices(rows, shape.experts, per_token, favoured);
        by_slot = !by_slot;
        CheckProduct(type, type, shape, choices, per_token, by_slot);
        CheckProduct(type, WeightType::kF32, shape, choices, per_token, !by_slot);
      }
    }
    CheckProduct(type, type, {2, 40, 136}, Choices(260, 2, 1), 1, false);
  }
}

TEST_F(ExpertsTest, ARowsBitsDoNotDependOnItsBatch) {
  const Shape shape{3, 136, 264};
  const int64_t rows = 330, per_token = 2;
  for (const WeightType type : kTypes) {
    const std::vector<float> values = Normals(rows * shape.inputs);
    const Numbers weights(type, Normals(shape.experts * shape.outputs * shape.inputs));
    const std::vector<int32_t> choices = Choices(rows, shape.experts, per_token);
    // [choice][outputs] of the rows [first, first + count) alone.
    const auto compute = [&](int64_t first, int64_t count) {
      const std::vector<int32_t> some(choices.begin() + first * per_token,
                                      choices.begin() + (first + count) * per_token);
      const Numbers x(type, {values.begin() + first * shape.inputs,
                             values.begin() + (first + count) * shape.inputs});
      const Groups groups(some, shape.experts, per_token);
      const std::vector<double> by_slot =
          Multiply(type, type, shape, weights, x, groups, count * per_token, false).Read();
      std::vector<double> by_choice;
      for (const int32_t slot : groups.slot.Read()) {
        const auto begin = by_slot.begin() + slot * shape.outputs;
        by_choice.insert(by_choice.end(), begin, begin + shape.outputs);
      }
      return by_choice;
    };
    const std::vector<double> all = compute(0, rows);
    for (const auto& [first, count] :
         std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {17, 9}, {100, 60}, {329, 1}}) {
      const auto begin = all.begin() + first * per_token * shape.outputs;
      EXPECT_EQ(compute(first, count),
                std::vector<double>(begin, begin + count * per_token * shape.outputs))
          << NameOf(type) << " rows from " << first << ": " << count;
    }
  }
}

TEST_F(ExpertsTest, CombineAddsWhatWasChosen) {
  for (const auto& [rows, per_token, width] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{
           {1, 1, 1}, {3, 2, 37}, {9, 8, 2056}, {2, 5, 4099}}) {
    const std::vector<float> values = Normals(rows * per_token * width);
    const std::vector<float> factors = Normals(rows * per_token);
    std::vector<int32_t> places(factors.size());
    for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int32_t>(i);
    for (size_t i = places.size(); i > 1; --i) {
      std::swap(places[i - 1], places[static_cast<size_t>(Below(static_cast<int64_t>(i)))]);
    }
    const Values<float> in(values), weight(factors), out(rows * width);
    const Values<int32_t> slot(places);
    Combine({in.data(), slot.data(), weight.data(), rows, per_token, width, out.data()}, stream());
    const std::vector<float> got = out.Read();
    ExpectNear(WeightType::kF32, {got.begin(), got.end()}, [&](int64_t at) -> Expected {
      double sum = 0, sizes = 0;
      for (int64_t i = at / width * per_token; i < (at / width + 1) * per_token; ++i) {
        const auto choice = static_cast<size_t>(i);
        const double term = static_cast<double>(factors[choice]) *
                            values[static_cast<size_t>(places[choice] * width + at % width)];
        sum += term;
        sizes += std::fabs(term);
      }
      return {sum, static_cast<double>(per_token + 1) * kUnit * sizes};
    });
  }
}

TEST_F(ExpertsTest, NoRowsNothingHappens) {
  GroupByExpert({nullptr, 0, 8, 2, nullptr, nullptr, nullptr}, stream());
  MultiplyExperts({WeightType::kBF16, nullptr, 0, nullptr, 8, 0, nullptr, nullptr, 8, 8,
                   WeightType::kBF16, nullptr},
                  stream());
  Combine({nullptr, nullptr, nullptr, 0, 2, 8, nullptr}, stream());
}

}  // namespace
}  // namespace evald::native::cuda
