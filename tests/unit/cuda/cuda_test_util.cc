#include "cuda_test_util.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "evald/error.h"
#include "worker/native/cuda/pull.h"
#include "worker/native/cuda/served.h"

namespace evald::native::cuda {

CudaModel::CudaModel(const std::filesystem::path& directory, const CudaModelOptions& options)
    : config(ReadModelConfig(directory)),
      weights(directory, config),
      device_weights(weights, options.type.value_or(TypeOfMost(weights))),
      products(MakeProducts(options.fast)),
      device(config, &device_weights, products.get(), options.device),
      cache(&device, uint64_t{64} << 20),
      model(std::make_unique<Model>(config, weights, &device)) {
  Pull(device_weights, {.threads = 1});
}

Sequence::Sequence(CudaModel* model, std::vector<int32_t> all, const Sequence* prefix,
                   int64_t shared_pages)
    : tokens(std::move(all)) {
  for (int64_t i = 0; i < PagesFor(static_cast<int64_t>(tokens.size())); ++i) {
    refs.push_back(i < shared_pages ? prefix->refs.at(static_cast<size_t>(i))
                                    : model->cache.Allocate());
    pages.push_back(refs.back().get());
  }
  computed = shared_pages * kPagePositions;
}

Segment Sequence::Next(int count, int logits_from) {
  Segment segment;
  segment.tokens = tokens.data() + computed;
  segment.count = count;
  segment.first_position = computed;
  segment.pages = pages.data();
  segment.logits_from = logits_from;
  computed += count;
  return segment;
}

std::vector<std::string> ServedGoldenNames() {
  std::vector<std::string> names = GoldenNames();
  std::erase_if(names, [](const std::string& name) {
    try {
      RefuseUnserved(ReadModelConfig(GoldenPath(name)));
      return false;
    } catch (const Error&) {
      return true;
    }
  });
  return names;
}

std::vector<int32_t> SomeTokens(int64_t count, int seed) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<int32_t>((i * 37 + seed * 101 + i * i * seed) % 318 + 2));
  }
  return tokens;
}

std::vector<std::vector<float>> AllLogits(CudaModel* model, const std::vector<int32_t>& tokens,
                                          int64_t chunk) {
  Sequence sequence(model, tokens);
  std::vector<std::vector<float>> result;
  while (sequence.left() > 0) {
    const auto count = static_cast<int>(std::min(chunk, sequence.left()));
    const std::vector<float> logits = model->model->Logits({sequence.Next(count)});
    for (auto row = logits.begin(); row != logits.end(); row += model->config.vocab_size) {
      result.emplace_back(row, row + model->config.vocab_size);
    }
  }
  return result;
}

testing::AssertionResult SameBits(const std::vector<std::vector<float>>& found,
                                  const std::vector<std::vector<float>>& expected) {
  if (found.size() != expected.size()) {
    return testing::AssertionFailure() << found.size() << " rows, not " << expected.size();
  }
  for (size_t row = 0; row < found.size(); ++row) {
    const size_t bytes = expected[row].size() * sizeof(float);
    if (found[row].size() == expected[row].size() &&
        std::memcmp(found[row].data(), expected[row].data(), bytes) == 0) {
      continue;
    }
    const auto at = std::mismatch(found[row].begin(), found[row].end(), expected[row].begin());
    return testing::AssertionFailure()
           << "row " << row << ", logit " << at.first - found[row].begin() << ": " << *at.first
           << " is not " << *at.second;
  }
  return testing::AssertionSuccess();
}

Spread LogitsSpread(const std::string& golden, CudaModel* model, const std::set<size_t>& prompts) {
  const std::vector<float> expected = GoldenLogits(golden);
  const auto vocab = static_cast<size_t>(model->config.vocab_size);
  size_t at = 0, compared = 0;
  Spread spread;
  double squares = 0;
  const Json all = Golden(golden)["logits"];
  for (const Json& prompt : all) {
    const auto tokens = prompt["tokens"].get<std::vector<int32_t>>();
    const auto positions = prompt["positions"].get<std::vector<size_t>>();
    if (prompts.count(tokens.size()) == 0) {
      at += positions.size() * vocab;
      continue;
    }
    const auto logits = AllLogits(model, tokens, static_cast<int64_t>(tokens.size()));
    for (const size_t position : positions) {
      for (const float logit : logits.at(position)) {
        const double difference = std::abs(static_cast<double>(logit) - expected.at(at++));
        if (std::isnan(difference)) return {INFINITY, INFINITY};
        spread.largest = std::max(spread.largest, difference);
        squares += difference * difference;
        ++compared;
      }
    }
  }
  if (at != expected.size() || compared == 0) return {INFINITY, INFINITY};
  spread.rms = std::sqrt(squares / static_cast<double>(compared));
  return spread;
}

}  // namespace evald::native::cuda
