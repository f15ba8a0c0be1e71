#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "worker/native/config.h"
#include "worker/native/kernels.h"
#include "worker/native/kv_cache.h"
#include "worker/native/rope.h"
#include "worker/native/thread_pool.h"
#include "worker/native/weights.h"

namespace evald::native {

/// Consecutive tokens of one sequence that are to be computed.
struct Segment {
  const int32_t* tokens = nullptr;
  int count = 0;
  int64_t first_position = 0;
  float* const* pages = nullptr;  ///< the sequence's pages, from position 0 to the last token
  int logits_from = 0;            ///< logits of rows [logits_from, count) are wanted
};

/// The forward pass of the Llama architecture (transformers, modeling_llama.py) in fp32. The
/// numbers of a row depend on its sequence's tokens up to it, and on nothing else of the batch.
class LlamaModel {
 public:
  /// Called for each wanted row, in order; `logits` ([vocab_size]) may be overwritten afterwards.
  using LogitsSink = std::function<void(size_t segment, int row, const float* logits)>;

  /// All referenced objects must outlive the model.
  LlamaModel(const LlamaConfig& config, const LlamaWeights& weights, const PageLayout& layout,
             const Kernels& kernels, ThreadPool* pool);

  /// Computes the segments' rows: writes their keys and values to the pages, then hands out logits.
  /// A segment's earlier positions must have been computed. Tokens must be below vocab_size.
  void Forward(const std::vector<Segment>& segments, const LogitsSink& sink);

 private:
  struct AttentionTask {
    size_t segment;
    int64_t head;      ///< key-value head
    int first, count;  ///< rows of the segment
  };

  void Embed(const std::vector<Segment>& segments);
  void ComputeLayer(int64_t index, std::vector<Segment>* segments);
  void StoreKeysAndValues(int64_t layer, const std::vector<Segment>& segments);
  void RotateHeads(const std::vector<Segment>& segments, float* heads, int64_t count);
  void Attend(int64_t layer, const std::vector<Segment>& segments);
  void KeepWanted(std::vector<Segment>* segments);
  void ComputeLogits(const std::vector<Segment>& segments, const LogitsSink& sink);

  void Normalize(const std::vector<float>& weight);
  void Multiply(const Matrix& matrix, const float* x, int64_t rows, float* y);
  void AddResidual();

  const LlamaConfig& config_;
  const LlamaWeights& weights_;
  const PageLayout& layout_;
  const Kernels& kernels_;
  ThreadPool* pool_;
  RopeTable rope_;

  int64_t rows_ = 0;
  std::vector<float> hidden_;      ///< [rows][hidden_size], the residual stream
  std::vector<float> normalized_;  ///< [rows][hidden_size]
  std::vector<float> query_, key_, value_, attended_;
  std::vector<float> gate_, up_;  ///< [rows][intermediate_size]
  std::vector<float> logits_;
  std::vector<std::vector<float>> scratch_;  ///< per thread
};

}  // namespace evald::native
