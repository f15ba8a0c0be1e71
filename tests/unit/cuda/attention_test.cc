#include "worker/native/cuda/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/unit/cuda/attention_test_util.h"

namespace evald::native::cuda {
namespace {

constexpr int64_t kChunk = kChunkPages * kPagePositions;

// Weights and results are rounded to the type, by up to 2^-8 or 2^-11 of their value. Small weights
// in fp16 are multiples of 2^-24.
double Bound(WeightType type, const World::Expected& expected) {
  switch (type) {
    case WeightType::kBF16:
      return expected.size * 0x1p-8 * 2 + 1e-6;
    case WeightType::kF16:
      return expected.size * 0x1p-11 * 2 + expected.keys * 0x1p-25 * 4 + 0x1p-24;
    case WeightType::kF32:
      return expected.size * 2e-5 + 1e-6;
  }
  return 0;
}

void ExpectNear(const WorldShape& shape, World* world, const std::vector<Part>& parts,
                const std::vector<uint32_t>& bits) {
  const auto expected = world->Reference(parts);
  ASSERT_EQ(bits.size(), expected.size());
  const auto width = static_cast<size_t>(shape.heads() * shape.head_dim);
  int wrong = 0;
  for (size_t i = 0; i < bits.size() && wrong < 5; ++i) {
    const double value = world->Number(bits[i]);
    const double difference = std::abs(value - expected[i].value);
    if (difference <= Bound(shape.type, expected[i])) continue;  // false for NaN
    ++wrong;
    ADD_FAILURE() << "row " << i / width << ", column " << i % width << ": " << value << ", not "
                  << expected[i].value;
  }
}

struct Case {
  WorldShape shape;
  std::vector<Part> parts;
};

// Decode and prefill: chunks that begin, end and are crossed, and odd lengths.
std::vector<Part> Mixed() {
  return {{0, 0, 1}, {1, 0, 37}, {2, 511, 1}, {3, 512, 1}, {4, 506, 9}, {5, 63, 2}, {6, 1100, 1}};
}

std::vector<Case> Cases() {
  using W = WeightType;
  return {
      {{W::kBF16, 16, 2, 1}, Mixed()},
      {{W::kF16, 16, 1, 4, true}, Mixed()},
      {{W::kBF16, 64, 1, 7}, Mixed()},
      {{W::kF16, 64, 2, 1, false, 100}, Mixed()},
      {{W::kF16, 80, 1, 4}, {{0, 0, 21}, {1, 520, 3}}},
      {{W::kBF16, 80, 2, 1, true, 64}, {{0, 100, 21}, {1, 520, 3}}},
      {{W::kBF16, 96, 1, 4, false, 33}, {{0, 0, 50}, {1, 540, 1}}},
      {{W::kF16, 96, 1, 7}, {{0, 70, 11}, {1, 540, 1}}},
      {{W::kBF16, 128, 2, 4}, {{0, 0, 70}, {1, 510, 5}, {2, 900, 1}}},
      {{W::kF16, 128, 1, 7, true, 600}, {{0, 130, 13}, {1, 1300, 2}}},
      {{W::kBF16, 192, 1, 2}, {{0, 30, 40}, {1, 515, 1}}},
      {{W::kBF16, 256, 1, 4}, {{0, 30, 20}, {1, 515, 1}}},
      {{W::kF16, 256, 1, 1}, {{0, 0, 66}, {1, 600, 1}}},
      {{W::kBF16, 64, 1, 71}, {{0, 90, 2}}},
      {{W::kF32, 16, 1, 2, true}, Mixed()},
      {{W::kF32, 80, 1, 7, false, 70}, {{0, 0, 50}, {1, 600, 2}}},
      {{W::kF32, 256, 1, 1}, {{0, 10, 5}, {1, 600, 1}}},
      {{W::kBF16, 20, 2, 3}, {{0, 0, 40}, {1, 600, 2}}},
      {{W::kF16, 264, 1, 2}, {{0, 10, 9}, {1, 515, 1}}},
  };
}

std::string NameOf(const testing::TestParamInfo<Case>& info) {
  const WorldShape& shape = info.param.shape;
  const char* types[] = {"F32", "F16", "BF16"};
  return std::string(types[static_cast<int>(shape.type)]) + "Dim" + std::to_string(shape.head_dim) +
         "Group" + std::to_string(shape.group) + "Window" + std::to_string(shape.window);
}

class AttentionTest : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(All, AttentionTest, testing::ValuesIn(Cases()), NameOf);

TEST_P(AttentionTest, AgainstDoubles) {
  World world(GetParam().shape, GetParam().parts, 1);
  ExpectNear(GetParam().shape, &world, GetParam().parts, world.Attend(GetParam().parts, 3));
}

// The numbers of a row are the same alone and beside any other rows.
TEST_P(AttentionTest, SameBitsWhateverIsBeside) {
  const std::vector<Part>& parts = GetParam().parts;
  World world(GetParam().shape, parts, 2);
  const auto width = static_cast<size_t>(GetParam().shape.heads() * GetParam().shape.head_dim);
  const auto all = world.Attend(parts);
  size_t row = 0;
  for (const Part& part : parts) {
    for (int i = 0; i < part.count; i += i % 5 == 0 ? 1 : 6) {
      const Part alone{part.sequence, part.first_position + i, 1};
      const auto begin =
          all.begin() + static_cast<std::ptrdiff_t>((row + static_cast<size_t>(i)) * width);
      EXPECT_EQ(world.Attend({alone}),
                std::vector<uint32_t>(begin, begin + static_cast<std::ptrdiff_t>(width)))
          << "sequence " << part.sequence << ", row " << i;
    }
    row += static_cast<size_t>(part.count);
  }
  std::vector<Part> reversed(parts.rbegin(), parts.rend());
  const auto backwards = world.Attend(reversed, 1);
  size_t from = all.size(), at = 0;
  for (const Part& part : reversed) {
    const size_t numbers = static_cast<size_t>(part.count) * width;
    from -= numbers;
    EXPECT_TRUE(std::equal(backwards.begin() + static_cast<std::ptrdiff_t>(at),
                           backwards.begin() + static_cast<std::ptrdiff_t>(at + numbers),
                           all.begin() + static_cast<std::ptrdiff_t>(from)))
        << "sequence " << part.sequence;
    at += numbers;
  }
}

// Ten sequences that begin with the same chunk.
std::vector<Part> Shared(int64_t pages) {
  std::vector<Part> parts;
  for (int i = 0; i < 10; ++i) {
    Part part{i, 512 + 7 * i, 1 + i % 3};
    part.shared_pages = i == 0 ? 0 : pages;
    parts.push_back(part);
  }
  return parts;
}

TEST(AttentionSharedTest, APrefixIsReadOnceAndChangesNothing) {
  const WorldShape shape{WeightType::kBF16, 64, 2, 4};
  const auto parts = Shared(8);
  World world(shape, parts, 3);
  const auto shared = world.Plan(parts);
  const auto of_chunk = [](const AttentionPlan& plan, int chunk) {
    return std::count_if(plan.items.begin(), plan.items.end(),
                         [&](const AttendItem& item) { return item.chunk == chunk; });
  };
  EXPECT_EQ(of_chunk(shared, 0), 2);  // 19 rows, 16 to an item
  EXPECT_EQ(of_chunk(shared, 1), 10);
  const auto together = world.Attend(parts);
  ExpectNear(shape, &world, parts, together);
  world.Unshare();
  EXPECT_EQ(of_chunk(world.Plan(parts), 0), 10);
  EXPECT_EQ(world.Attend(parts), together);
}

TEST(AttentionSharedTest, PagesThatDifferKeepRowsApart) {
  const WorldShape shape{WeightType::kF16, 16, 1, 1};
  const auto parts = Shared(7);  // each sequence has its own eighth page
  World world(shape, parts, 4);
  for (const AttendItem& item : world.Plan(parts).items) EXPECT_LE(item.count, 3);
  ExpectNear(shape, &world, parts, world.Attend(parts));
}

// Each row's part of a chunk is in exactly one item, whose rows are neighbours that fit into a
// block.
void ExpectWhole(const AttentionPlan& plan, const std::vector<Part>& parts, int64_t window,
                 int64_t group) {
  std::multiset<std::pair<int64_t, int64_t>> wanted, found;
  std::vector<int32_t> partials{0};
  int64_t row = 0, table = 0, most = 0;
  std::vector<int64_t> tables;
  for (const Part& part : parts) {
    for (int64_t p = part.first_position; p < part.first_position + part.count; ++p, ++row) {
      const int64_t first = window > 0 ? std::max<int64_t>(0, p + 1 - window) : 0;
      for (int64_t c = first / kChunk; c <= p / kChunk; ++c) wanted.insert({row, c});
      const int64_t seen = p / kChunk - first / kChunk + 1;
      partials.push_back(partials.back() + static_cast<int32_t>(seen));
      most = std::max(most, seen);
      tables.push_back(table);
    }
    table += PagesFor(part.first_position + part.count);
  }
  for (const AttendItem& item : plan.items) {
    EXPECT_GT(item.count, 0);
    EXPECT_LE(item.count * group, std::max<int64_t>(64, group));
    EXPECT_EQ(item.table, tables[static_cast<size_t>(item.first)]);
    for (int i = 0; i < item.count; ++i) found.insert({item.first + i, item.chunk});
  }
  EXPECT_EQ(found, wanted);
  EXPECT_EQ(plan.partials, partials);
  EXPECT_EQ(plan.chunks_max, most);
}

TEST(AttentionPlanTest, EveryRowSeesItsChunksOnce) {
  for (const int64_t window : {0, 1, 64, 500, 513, 4000}) {
    for (const int64_t group : {1, 4, 7, 71}) {
      std::vector<Part> parts = Mixed();
      parts.push_back({7, 400, 700});
      World world({WeightType::kBF16, 16, 1, 1, false, window}, parts, 5);
      ExpectWhole(world.Plan(parts, group), parts, window, group);
    }
  }
}

TEST(AttentionPlanTest, ManyRowsFirstThenThoseWithManyPages) {
  const std::vector<Part> parts{{0, 100, 1}, {1, 0, 40}, {2, 450, 1}, {3, 300, 40}};
  World world({WeightType::kBF16, 16, 1, 1}, parts, 6);
  const auto plan = world.Plan(parts, 1);
  std::vector<int32_t> firsts;
  for (const AttendItem& item : plan.items) firsts.push_back(item.first);
  EXPECT_EQ(firsts, (std::vector<int32_t>{42, 1, 41, 0}));
}

TEST(AttentionPlanTest, NothingForNoRows) {
  const auto plan = PlanAttention({}, 0, 4);
  EXPECT_TRUE(plan.items.empty());
  EXPECT_EQ(plan.partials, std::vector<int32_t>{0});
  EXPECT_EQ(plan.chunks_max, 0);
}

}  // namespace
}  // namespace evald::native::cuda
