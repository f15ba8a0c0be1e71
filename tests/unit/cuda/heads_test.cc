// PrepareHeads: the changes of queries, keys and values between their product and attention.
#include <algorithm>
#include <cmath>

#include "tests/unit/cuda/kernels_test_util.h"
#include "worker/native/cuda/kernels.h"

namespace evald::native::cuda {
namespace {

constexpr float kEps = 1e-6f;
constexpr int64_t kLayers = 2, kLayer = 1;
constexpr int64_t kPages = 6;

struct Shape {
  const char* name;
  int64_t heads, kv_heads, head_dim, rotary_dim;
  bool packed, biased;
  HeadNorm norm;
};

const std::vector<Shape> kShapes = {
    {"llama", 4, 2, 64, 64, false, false, HeadNorm::kNone},
    {"qwen2", 6, 2, 128, 128, false, true, HeadNorm::kNone},
    {"internlm2", 4, 2, 64, 64, true, false, HeadNorm::kNone},
    {"neox, a quarter rotated", 3, 3, 64, 16, true, true, HeadNorm::kNone},
    {"odd parts", 2, 1, 20, 10, false, true, HeadNorm::kNone},
    {"vectors that rotation cuts", 2, 2, 16, 8, false, false, HeadNorm::kEach},
    {"qwen3", 4, 2, 128, 128, false, false, HeadNorm::kEach},
    {"odd number of rests", 5, 1, 24, 16, false, true, HeadNorm::kEach},
    {"large heads", 2, 1, 256, 256, false, true, HeadNorm::kEach},
    {"more than a warp's vectors", 1, 1, 528, 528, false, false, HeadNorm::kEach},
    {"packed and normalized", 4, 2, 32, 32, true, true, HeadNorm::kEach},
    {"olmo2", 4, 4, 64, 64, false, false, HeadNorm::kWhole},
    {"odd and normalized together", 3, 1, 12, 12, false, true, HeadNorm::kWhole},
};

class HeadsTest : public KernelTest {
 protected:
  // A batch on the device, and the results of PrepareHeads.
  struct Work {
    Shape shape;
    WeightType type;
    int64_t width;  // of a row
    std::vector<int32_t> positions, tables;
    Numbers qkv, pages;
    std::vector<float> bias, query_norm, key_norm, cosines, sines;
  };

  Work MakeWork(const Shape& shape, WeightType type, std::vector<int32_t> positions,
                const std::vector<float>& qkv) {
    const int64_t width = (shape.heads + 2 * shape.kv_heads) * shape.head_dim;
    const int64_t page = kLayers * 2 * shape.kv_heads * kPagePositions * shape.head_dim;
    const bool whole = shape.norm == HeadNorm::kWhole;
    const int64_t angles = 2 * kPagePositions * shape.rotary_dim / 2;
    Work work{shape,
              type,
              width,
              std::move(positions),
              {},
              {type, qkv},
              {type, kPages * page},
              Normals(width),
              Normals(whole ? shape.heads * shape.head_dim : shape.head_dim),
              Normals(whole ? shape.kv_heads * shape.head_dim : shape.head_dim),
              {},
              {}};
    for (int64_t i = 0; i < angles; ++i) {
      const double angle = 2 * M_PI * Uniform();
      work.cosines.push_back(static_cast<float>(std::cos(angle)));
      work.sines.push_back(static_cast<float>(std::sin(angle)));
    }
    return work;
  }

  static void TakeParameters(const Work& from, Work* to) {
    to->bias = from.bias;
    to->query_norm = from.query_norm;
    to->key_norm = from.key_norm;
    to->cosines = from.cosines;
    to->sines = from.sines;
  }

  static int64_t PageElements(const Work& work) {
    return kLayers * 2 * work.shape.kv_heads * kPagePositions * work.shape.head_dim;
  }

  void Prepare(const Work& work) {
    // Tables of two pages each, in no order.
    std::vector<char*> pages;
    for (const int64_t page : {4, 1, 0, 5, 3, 2}) {
      pages.push_back(static_cast<char*>(work.pages.data()) +
                      page * PageElements(work) * BytesOf(work.type));
    }
    const Values<char*> device_pages(pages);
    const Values<int32_t> positions(work.positions), tables(work.tables);
    const Values<float> bias(work.bias), query_norm(work.query_norm), key_norm(work.key_norm);
    const Values<float> cosines(work.cosines), sines(work.sines);
    HeadsArgs args{};
    args.batch.rows = static_cast<int64_t>(work.positions.size());
    args.batch.positions = positions.data();
    args.batch.tables = tables.data();
    args.batch.pages = device_pages.data();
    args.qkv = work.qkv.data();
    args.kv = {work.type, kLayers, work.shape.kv_heads, work.shape.head_dim};
    args.layer = kLayer;
    args.heads = work.shape.heads;
    args.rotary_dim = work.shape.rotary_dim;
    args.packed = work.shape.packed;
    args.bias = work.shape.biased ? bias.data() : nullptr;
    args.norm = work.shape.norm;
    args.query_norm = work.shape.norm == HeadNorm::kNone ? nullptr : query_norm.data();
    args.key_norm = work.shape.norm == HeadNorm::kNone ? nullptr : key_norm.data();
    args.eps = kEps;
    args.cosines = cosines.data();
    args.sines = sines.data();
    PrepareHeads(args, stream());
    work.qkv.Bytes();  // waits as long as the kernel needs the arguments
  }

  enum Part { kQueries, kKeys, kValues };
  static int64_t OffsetOf(const Shape& shape, Part part, int64_t head) {
    const int64_t group = shape.heads / shape.kv_heads;
    if (!shape.packed) {
      const int64_t before = part == kQueries ? 0
                             : part == kKeys  ? shape.heads
                                              : shape.heads + shape.kv_heads;
      return (before + head) * shape.head_dim;
    }
    const int64_t set = part == kQueries ? head / group : head;
    const int64_t within = part == kQueries ? head % group : part == kKeys ? group : group + 1;
    return (set * (group + 2) + within) * shape.head_dim;
  }

  // One row's part in double precision: [heads of the part][head_dim].
  static std::vector<Expected> Reference(const Work& work, const Numbers& given, int64_t row,
                                         Part part) {
    const Shape& shape = work.shape;
    const int64_t heads = part == kQueries ? shape.heads : shape.kv_heads, dim = shape.head_dim;
    std::vector<Expected> out;
    for (int64_t i = 0; i < heads * dim; ++i) {
      const int64_t at = OffsetOf(shape, part, i / dim) + i % dim;
      const double b = shape.biased ? work.bias[static_cast<size_t>(at)] : 0;
      const double x = given.at(row * work.width + at) + b;
      out.push_back({x, kUnit * std::fabs(x)});
    }
    if (part == kValues) return out;
    const bool whole = shape.norm == HeadNorm::kWhole;
    const int64_t together = whole ? heads * dim : dim;
    for (int64_t first = 0; first < heads * dim && shape.norm != HeadNorm::kNone;
         first += together) {
      double squares = 0;
      for (int64_t i = first; i < first + together; ++i) {
        squares += std::pow(out[static_cast<size_t>(i)].value, 2);
      }
      const double factor = 1 / std::sqrt(squares / static_cast<double>(together) + kEps);
      const std::vector<float>& weight = part == kQueries ? work.query_norm : work.key_norm;
      for (int64_t i = first; i < first + together; ++i) {
        double& value = out[static_cast<size_t>(i)].value;
        value *= factor * weight[static_cast<size_t>(i - first)];
        out[static_cast<size_t>(i)].error = 100 * kUnit * std::fabs(value);
      }
    }
    const int64_t half = shape.rotary_dim / 2;
    for (int64_t head = 0; head < heads; ++head) {
      for (int64_t i = 0; i < half; ++i) {
        Expected& a = out[static_cast<size_t>(head * dim + i)];
        Expected& b = out[static_cast<size_t>(head * dim + i + half)];
        const auto angle = static_cast<size_t>(work.positions[static_cast<size_t>(row)] * half + i);
        const double c = work.cosines[angle], s = work.sines[angle];
        const Expected old_a = a, old_b = b;
        const double error = old_a.error + old_b.error +
                             2 * kUnit * (std::fabs(old_a.value) + std::fabs(old_b.value));
        a = {old_a.value * c - old_b.value * s, error};
        b = {old_b.value * c + old_a.value * s, error};
      }
    }
    return out;
  }
};

TEST_F(HeadsTest, AgainstDoubles) {
  for (const Shape& shape : kShapes) {
    for (const WeightType type : kTypes) {
      SCOPED_TRACE(testing::Message() << shape.name << " " << NameOf(type));
      const int64_t dim = shape.head_dim;
      const int64_t width = (shape.heads + 2 * shape.kv_heads) * dim;
      const std::vector<int32_t> positions = {0, 63, -1, 64 + static_cast<int32_t>(Below(64)),
                                              static_cast<int32_t>(1 + Below(62))};
      Work work =
          MakeWork(shape, type, positions, Normals(static_cast<int64_t>(positions.size()) * width));
      work.tables = {2, 0, 4, 2, 4};
      // pages of their positions, as Prepare places them
      const int64_t first_page[] = {0, 4, -1, 5, 3};
      Prepare(work);
      std::vector<Expected> pages(static_cast<size_t>(kPages * PageElements(work)), {NAN, 0});
      const std::vector<double> qkv = work.qkv.Read(), stored = work.pages.Read();
      for (int64_t row = 0; row < static_cast<int64_t>(positions.size()); ++row) {
        const int64_t position = positions[static_cast<size_t>(row)];
        std::vector<double> queries;
        std::vector<Expected> expected;
        for (int64_t i = 0; i < shape.heads * dim; ++i) {
          const int64_t at = OffsetOf(shape, kQueries, i / dim) + i % dim;
          queries.push_back(qkv[static_cast<size_t>(row * width + at)]);
          expected.push_back({work.qkv.at(row * width + at), 0});  // a padding row
        }
        if (position >= 0) expected = Reference(work, work.qkv, row, kQueries);
        ExpectNear(type, queries, [&](int64_t i) { return expected[static_cast<size_t>(i)]; });
        if (position < 0) continue;
        for (const Part part : {kKeys, kValues}) {
          const std::vector<Expected> of_part = Reference(work, work.qkv, row, part);
          for (int64_t i = 0; i < shape.kv_heads * dim; ++i) {
            const int64_t place =
                ((kLayer * 2 + (part == kValues)) * shape.kv_heads + i / dim) * kPagePositions +
                position % kPagePositions;
            const int64_t at = first_page[row] * PageElements(work) + place * dim + i % dim;
            pages[static_cast<size_t>(at)] = of_part[static_cast<size_t>(i)];
          }
        }
      }
      std::vector<double> written;
      std::vector<Expected> expected;
      for (size_t i = 0; i < stored.size(); ++i) {
        if (std::isnan(pages[i].value)) {
          ASSERT_TRUE(std::isnan(stored[i])) << "written at " << i << ", where no row is stored";
          continue;
        }
        written.push_back(stored[i]);
        expected.push_back(pages[i]);
      }
      ExpectNear(type, written, [&](int64_t i) { return expected[static_cast<size_t>(i)]; });
    }
  }
}

// Attention multiplies positions that a row does not see by 0.
TEST_F(HeadsTest, AValueThatIsNotFiniteBecomesZerosAndItsKeyNan) {
  for (const Shape& shape : kShapes) {
    for (const WeightType type : kTypes) {
      SCOPED_TRACE(testing::Message() << shape.name << " " << NameOf(type));
      const int64_t dim = shape.head_dim;
      const std::vector<float> values = Normals((shape.heads + 2 * shape.kv_heads) * dim);
      Work good = MakeWork(shape, type, {40}, values);
      good.tables = {2};  // from page 0 on
      Prepare(good);
      const std::vector<double> expected = good.pages.Read();
      for (const float bad : {NAN, INFINITY, -INFINITY, 6e4f}) {
        const int64_t head = Below(shape.kv_heads);
        const auto at = static_cast<size_t>(OffsetOf(shape, kValues, head) + Below(dim));
        const bool overflows = bad == 6e4f;  // in fp16, with its bias
        if (overflows && !(type == WeightType::kF16 && shape.biased)) continue;
        std::vector<float> changed = values;
        changed[at] = bad;
        Work work = MakeWork(shape, type, {40}, changed);
        work.tables = {2};
        TakeParameters(good, &work);
        if (overflows) work.bias[at] = bad;
        Prepare(work);
        const std::vector<double> stored = work.pages.Read();
        const auto begin = [&](bool value) {
          return ((kLayer * 2 + value) * shape.kv_heads + head) * kPagePositions * dim + 40 * dim;
        };
        for (int64_t i = 0; i < static_cast<int64_t>(stored.size()); ++i) {
          const double number = stored[static_cast<size_t>(i)];
          const double before = expected[static_cast<size_t>(i)];
          const bool of_key = i >= begin(false) && i < begin(false) + dim;
          const bool of_value = i >= begin(true) && i < begin(true) + dim;
          const bool nan = of_key || (!of_value && std::isnan(before));
          ASSERT_EQ(std::isnan(number), nan) << "at " << i << " with " << bad;
          ASSERT_TRUE(nan || number == (of_value ? 0 : before)) << "at " << i << " with " << bad;
        }
      }
    }
  }
}

TEST_F(HeadsTest, RowsDoNotDependOnTheirBatch) {
  for (const Shape& shape : kShapes) {
    const WeightType type = WeightType::kBF16;
    const int64_t width = (shape.heads + 2 * shape.kv_heads) * shape.head_dim;
    const int64_t bytes = width * BytesOf(type);
    const std::vector<float> values = Normals(3 * width);
    Work batch = MakeWork(shape, type, {5, 70, 3}, values);
    batch.tables = {0, 2, 4};
    Work one = MakeWork(shape, type, {70}, {values.begin() + width, values.begin() + 2 * width});
    one.tables = {2};
    TakeParameters(batch, &one);
    Prepare(batch);
    Prepare(one);
    const std::vector<char> all = batch.qkv.Bytes(), all_pages = batch.pages.Bytes();
    EXPECT_EQ(one.qkv.Bytes(), std::vector<char>(all.begin() + bytes, all.begin() + 2 * bytes))
        << shape.name;
    // Table 2 has pages 0 and 5. The batch's other rows do not touch these.
    const std::vector<char> pages = one.pages.Bytes();
    const int64_t page = PageElements(one) * BytesOf(type);
    EXPECT_TRUE(std::equal(pages.begin() + 5 * page, pages.end(), all_pages.begin() + 5 * page))
        << shape.name;
  }
}

}  // namespace
}  // namespace evald::native::cuda
