#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "../native/native_test_util.h"
#include "worker/native/cuda/cuda_device.h"
#include "worker/native/cuda/device_weights.h"
#include "worker/native/cuda/products.h"
#include "worker/native/kv_cache.h"
#include "worker/native/model.h"
#include "worker/native/weights.h"

namespace evald::native::cuda {

struct CudaModelOptions {
  std::optional<WeightType> type;  ///< nothing: the type that most weights are stored in
  bool fast = false;
  CudaOptions device = {.rows_max = 256};
};

/// A model on the emulated device, below the engine.
struct CudaModel {
  explicit CudaModel(const std::filesystem::path& directory, const CudaModelOptions& options = {});

  ModelConfig config;
  ModelWeights weights;
  DeviceWeights device_weights;
  std::unique_ptr<Products> products;
  CudaDevice device;
  KvCache cache;
  std::unique_ptr<Model> model;
};

/// A sequence with pages of its own, or one that begins with another's pages.
struct Sequence {
  std::vector<int32_t> tokens;
  std::vector<PageRef> refs;
  std::vector<Page*> pages;
  int64_t computed = 0;

  /// The first `shared_pages` whole pages are those of `prefix`, which must have been computed.
  Sequence(CudaModel* model, std::vector<int32_t> tokens, const Sequence* prefix = nullptr,
           int64_t shared_pages = 0);
  /// The next `count` tokens, with logits from row `logits_from` on. They count as computed.
  Segment Next(int count, int logits_from = 0);
  int64_t left() const { return static_cast<int64_t>(tokens.size()) - computed; }
};

/// The golden checkpoints that GPUs serve (RefuseUnserved).
std::vector<std::string> ServedGoldenNames();

/// Tokens that a golden checkpoint knows. Each seed gives different ones.
std::vector<int32_t> SomeTokens(int64_t count, int seed = 0);

/// Logits ([vocab_size]) after each token, computed `chunk` rows at a time.
std::vector<std::vector<float>> AllLogits(CudaModel* model, const std::vector<int32_t>& tokens,
                                          int64_t chunk);

/// Whether all bits are equal. If not, the message names the first row that differs.
testing::AssertionResult SameBits(const std::vector<std::vector<float>>& found,
                                  const std::vector<std::vector<float>>& expected);

/// The spread between the model's logits and the golden ones, for the prompts with these numbers of
/// tokens. Infinite if one of them is NaN.
Spread LogitsSpread(const std::string& golden, CudaModel* model, const std::set<size_t>& prompts);

}  // namespace evald::native::cuda
