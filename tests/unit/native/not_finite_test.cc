// Numbers that are not finite reach their own sequence only, and no sequence that is computed
// beside it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "native_test_util.h"
#include "worker/native/page_layout.h"

namespace evald::native {
namespace {

constexpr int32_t kBad = 5;  // the token whose embedding is NaN

class NotFiniteTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, NotFiniteTest, testing::ValuesIn(AllKernels()),
                         [](const auto& info) { return info.param; });

std::vector<float> Normals(int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(generator);
  return values;
}

// Keys and values of one head at some positions, and queries.
class Head {
 public:
  Head(int64_t head_dim, int64_t positions)
      : queries_(Normals(positions * head_dim, 1)),
        keys_(Normals(positions * head_dim, 2)),
        values_(Normals(positions * head_dim, 3)) {
    ModelConfig config;
    config.layers = config.kv_heads = 1;
    config.head_dim = head_dim;
    layout_ = PageLayout(config);
    memory_.resize(static_cast<size_t>(PagesFor(positions)),
                   std::vector<float>(static_cast<size_t>(layout_.floats)));
    for (auto& page : memory_) pages_.push_back(page.data());
    for (int64_t p = 0; p < positions; ++p) Store(p);
  }

  // Puts this number into the position's value.
  void Spoil(int64_t position, int64_t dimension, float number) {
    values_[static_cast<size_t>(position * layout_.head_dim + dimension)] = number;
    Store(position);
  }

  // [position][head_dim], `step` rows at a time. Each row sees the last `window` positions (0:
  // all).
  std::vector<float> Attend(const Kernels& kernels, int64_t step, int64_t window) const {
    const int64_t dim = layout_.head_dim, positions = static_cast<int64_t>(queries_.size()) / dim;
    std::vector<float> out(queries_.size());
    std::vector<float> scratch(static_cast<size_t>(step * ScoreStride(positions)));
    AttendArgs args;
    args.head_dim = static_cast<int>(dim);
    args.scale = 0.3f;
    args.key_offset = layout_.keys(0, 0);
    args.value_offset = layout_.values(0, 0);
    args.value_stride = layout_.value_stride;
    args.scratch = scratch.data();
    for (int64_t p = 0; p < positions; p += step) {
      std::vector<AttendRow> rows;
      for (int64_t i = p; i < std::min(positions, p + step); ++i) {
        rows.push_back({queries_.data() + i * dim, out.data() + i * dim, pages_.data(),
                        window == 0 ? 0 : std::max<int64_t>(0, i + 1 - window), i + 1});
      }
      args.rows = rows.data();
      args.count = static_cast<int>(rows.size());
      kernels.attend(args);
    }
    return out;
  }

 private:
  void Store(int64_t position) {
    float* page = memory_[static_cast<size_t>(position / kPagePositions)].data();
    const int64_t at = position * layout_.head_dim;
    layout_.Store(page, 0, 0, position % kPagePositions, keys_.data() + at, values_.data() + at);
  }

  PageLayout layout_;
  std::vector<std::vector<float>> memory_;
  std::vector<const float*> pages_;
  std::vector<float> queries_, keys_, values_;
};

TEST_P(NotFiniteTest, AValueReachesTheRowsThatSeeItAndNoOther) {
  constexpr int64_t kDim = 24, kPositions = 150;
  const Kernels& kernels = SelectKernels(GetParam());
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    for (const int64_t at : {0, 21, 63, 70, 149}) {
      for (const int64_t window : {0, 30}) {
        Head head(kDim, kPositions);
        const std::vector<float> good = head.Attend(kernels, 1, window);
        head.Spoil(at, at % kDim, bad);
        for (const int64_t step : {1, 2, 5, 150}) {
          const std::vector<float> found = head.Attend(kernels, step, window);
          for (size_t i = 0; i < found.size(); ++i) {
            const auto row = static_cast<int64_t>(i) / kDim;
            const bool sees = row >= at && (window == 0 || row < at + window);
            ASSERT_EQ(std::isnan(found[i]), sees)
                << "row " << row << " by " << step << ", " << bad << " at " << at;
            ASSERT_TRUE(sees || found[i] == good[i]) << "row " << row << " by " << step;
          }
        }
      }
    }
  }
}

std::vector<int32_t> Tokens(int count, int seed) {
  std::vector<int32_t> tokens;
  for (int i = 0; i < count; ++i) {
    const int32_t token = 2 + (i * 37 + seed * 101) % 318;
    tokens.push_back(token == kBad ? kBad + 1 : token);
  }
  return tokens;
}

// For each position, whether a NaN at position `bad` reaches its numbers.
std::vector<bool> Reached(const ModelConfig& config, int64_t positions, int64_t bad) {
  std::vector<bool> reached(static_cast<size_t>(positions));
  reached[static_cast<size_t>(bad)] = true;
  for (const int64_t window : config.windows) {
    std::vector<bool> next(reached.size());
    for (int64_t p = 0; p < positions; ++p) {
      const int64_t first = window == 0 ? 0 : std::max<int64_t>(0, p + 1 - window);
      const auto end = reached.begin() + p + 1;
      next[static_cast<size_t>(p)] = std::find(reached.begin() + first, end, true) != end;
    }
    reached = next;
  }
  return reached;
}

TEST_P(NotFiniteTest, ATokenReachesThePositionsThatSeeItHoweverTheyAreComputed) {
  constexpr int64_t kPositions = 200, kAt = 71;
  std::vector<int64_t> positions(kPositions);
  for (int64_t p = 0; p < kPositions; ++p) positions[static_cast<size_t>(p)] = p;
  std::vector<int32_t> tokens = Tokens(kPositions, 0);
  tokens[kAt] = kBad;
  int windowed = 0;
  for (const char* name : {"yarn", "mistral", "ministral", "gpt_neox", "internlm2", "olmo2",
                           "qwen3_moe", "gemma3_nested"}) {
    CheckpointCopy copy(name);
    copy.MakeEmbeddingNan(kBad);
    BareModel model(copy.path(), GetParam()), good(GoldenPath(name), GetParam());
    const auto expected = good.Logits(tokens, positions, 1);
    const std::vector<bool> reached = Reached(model.config, kPositions, kAt);
    windowed += reached.back() ? 0 : 1;
    for (const int64_t chunk : {1, 2, 13, 64, 200}) {
      SCOPED_TRACE(testing::Message() << name << " by " << chunk);
      const auto found = model.Logits(tokens, positions, chunk);
      for (int64_t p = 0; p < kPositions; ++p) {
        const auto row = static_cast<size_t>(p);
        const auto is_nan = [](float x) { return std::isnan(x); };
        if (reached[row]) {
          ASSERT_TRUE(std::all_of(found[row].begin(), found[row].end(), is_nan)) << "row " << p;
        } else if (p < kAt) {
          ASSERT_EQ(found[row], expected[row]) << "row " << p;
        } else {  // the token differs, but is not seen either
          ASSERT_TRUE(std::none_of(found[row].begin(), found[row].end(), is_nan)) << "row " << p;
        }
      }
    }
  }
  EXPECT_GT(windowed, 0);
}

// Requests that begin alike. Some have a bad token there or a little later.
TEST_P(NotFiniteTest, ARequestReachesNoOther) {
  constexpr int kRequests = 8;
  const auto is_bad = [](int doc) { return doc % 3 == 0; };
  std::vector<Request> requests;
  for (int doc = 0; doc < kRequests; ++doc) {
    Request request;
    request.doc_id = doc;
    request.context_tokens = Tokens(75, 1);
    for (const int32_t token : Tokens(10, 2 + doc)) request.context_tokens.push_back(token);
    if (is_bad(doc)) request.context_tokens[75 + static_cast<size_t>(doc / 3)] = kBad;
    request.sampling.max_gen_toks = 6;
    requests.push_back(request);
  }
  for (const char* name : {"gpt_neox", "yarn", "qwen3_moe"}) {
    CheckpointCopy copy(name);
    copy.MakeEmbeddingNan(kBad);
    copy.SetConfig("eos_token_id", nullptr);
    std::vector<std::string> first;
    for (const Json& settings : {Json{{"concurrency", 1}}, Json{{"concurrency", 64}},
                                 Json{{"concurrency", 64}, {"chunk", 9}}, Json{{"chunk", 33}}}) {
      SCOPED_TRACE(testing::Message() << name << " " << settings);
      Json all = settings;
      all["kernels"] = GetParam();
      const auto answers = AnswerAll(LoadedEngine(copy.path(), all).get(), requests);
      std::vector<std::string> texts;
      for (int doc = 0; doc < kRequests; ++doc) {
        const Generation& answer = answers[static_cast<size_t>(doc)];
        EXPECT_EQ(answer.undefined, is_bad(doc) ? answer.tokens_out : 0) << "document " << doc;
        texts.push_back(answer.text);
      }
      if (first.empty()) first = texts;
      EXPECT_EQ(texts, first);
    }
  }
}

// A token cannot be drawn from NaN. The request ends with an error that names it; requests beside
// it get the answers that they get without it.
TEST_P(NotFiniteTest, ARequestThatDrawsFromNanEndsAlone) {
  const auto drawing = [](int doc, bool bad) {
    Request request;
    request.task = "drawn";
    request.doc_id = doc;
    request.context_tokens = Tokens(20, doc);
    if (bad) request.context_tokens[11] = kBad;
    request.sampling.do_sample = true;
    request.sampling.max_gen_toks = 6;
    return request;
  };
  CheckpointCopy copy("yarn");
  copy.MakeEmbeddingNan(kBad);
  copy.SetConfig("eos_token_id", nullptr);
  for (const Json& settings :
       {Json::object(), Json{{"temperature", 0.7}}, Json{{"no_repeat_ngram_size", 2}}}) {
    SCOPED_TRACE(settings.dump());
    const auto with_settings = [&](Request request) {
      request.sampling.settings.update(settings);
      return request;
    };
    const auto engine = LoadedEngine(copy.path(), {{"kernels", GetParam()}});
    const std::vector<Generation> alone = AnswerAll(
        engine.get(), {with_settings(drawing(1, false)), with_settings(drawing(2, false))});
    for (int doc = 0; doc < 3; ++doc) {
      engine->Submit(static_cast<uint64_t>(doc), with_settings(drawing(doc, doc == 0)));
    }
    int refused = 0, answered = 0;
    while (engine->pending() > 0) {
      for (const Finished& one : engine->Step(std::chrono::milliseconds(50))) {
        if (one.tag == 0) {
          ++refused;
          ASSERT_TRUE(one.refused);
          EXPECT_EQ(one.refused->kind(), ErrorKind::kInput);
          EXPECT_NE(std::string(one.refused->what()).find("document 0"), std::string::npos)
              << one.refused->what();
        } else {
          ++answered;
          EXPECT_FALSE(one.refused);
          EXPECT_EQ(one.generation.text, alone[one.tag - 1].text);
        }
      }
    }
    EXPECT_EQ(refused, 1);
    EXPECT_EQ(answered, 2);
  }
}

}  // namespace
}  // namespace evald::native
