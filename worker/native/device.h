#pragma once

#include <cstdint>
#include <vector>

#include "worker/native/answer.h"
#include "worker/native/kv_cache.h"
#include "worker/native/weights.h"

namespace evald::native {

/// A placeholder for a token that is not known yet: the token in the last Ask's answer to that row
/// (Device::looks_ahead).
constexpr int32_t TokenOfAnswer(int64_t row) { return static_cast<int32_t>(-1 - row); }

/// Consecutive tokens of one sequence to compute.
struct Segment {
  const int32_t* tokens = nullptr;  ///< below vocab_size, or TokenOfAnswer
  int count = 0;
  int64_t first_position = 0;
  Page* const* pages = nullptr;  ///< the sequence's pages, from position 0 to the last token
  int logits_from = 0;           ///< logits of rows [logits_from, count) are wanted
};

/// A device's rows of activations during a batch, one row a token.
enum class Rows {
  kHidden,     ///< the residual stream
  kNormed,     ///< the input of the attention or feed-forward part
  kQkv,        ///< queries, keys and values
  kAttended,   ///< the attention's output
  kInner,      ///< the activation's input
  kActivated,  ///< the activation's output
  kOut,        ///< the addition of the attention or feed-forward part to the residual stream
};

/// Hardware on which a model is computed: it has the memory for keys and values, holds the
/// activations of one batch, and has the operations of models. Model calls them in order. They may
/// run later, but Collect and Logits wait. A row's numbers depend only on its sequence's tokens up
/// to that row, and on nothing else in the batch. One thread at a time.
class Device : public PageMemory {
 public:
  /// Begins a batch with these segments' rows. Their earlier positions must have been computed.
  virtual void Begin(const std::vector<Segment>& segments) = 0;
  /// kHidden = the tokens' rows of the embedding, times ModelConfig::embedding_scale.
  virtual void Embed(const Matrix& embedding) = 0;
  virtual void Normalize(const NormWeights& norm, Rows from, Rows to) = 0;
  virtual void Multiply(const Linear& linear, Rows from, Rows to) = 0;
  /// Normalizes the queries and keys of kQkv (HeadNorm).
  virtual void NormalizeHeads(const NormWeights& query, const NormWeights& key) = 0;
  /// Rotates the queries and keys of kQkv by their positions, with the layer's rope.
  virtual void Rotate(int64_t layer) = 0;
  /// Writes the keys and values of kQkv to the segments' pages. Attention multiplies by 0 the
  /// values that a row does not see, and must not get NaN of that, or the row would depend on what
  /// is computed beside it. So a value that has a number which is not finite is stored as zeros,
  /// and its key as NaN: the rows that see it become NaN, and no others. (Those come to that in any
  /// case: their product with the output weights has no finite number, and the next norm makes it
  /// NaN.)
  virtual void StoreKeysAndValues(int64_t layer) = 0;
  /// Drops the rows without wanted logits from kHidden and kQkv. Returns the number of rows left.
  virtual int64_t KeepWanted() = 0;
  /// kAttended = causal attention of kQkv's queries over the pages, with ModelConfig::query_scale()
  /// and attention_cap. Each position sees the last `window` positions, including its own; 0: all.
  virtual void Attend(int64_t layer, int64_t window) = 0;
  /// kActivated = activation(kInner), with gates if the model has them.
  virtual void Activate() = 0;
  /// kOut = the weighted sum of the experts that `layer`'s router chooses for each row of kNormed.
  virtual void MixExperts(const LayerWeights& layer) = 0;
  /// kHidden += kOut.
  virtual void AddOut() = 0;
  /// Asks for answers from the logits, kNormed times the head within ModelConfig::logits_cap, one
  /// wish for each row left; see Collect.
  virtual void Ask(const Linear& head, const std::vector<Wish>& wishes) = 0;
  /// Waits for the answers to the oldest Ask that was not collected.
  virtual std::vector<Answer> Collect() = 0;
  /// Drops all answers that were not collected.
  virtual void Forget() = 0;
  /// Whether a batch may be queued (Ask) before the answers to the batch before it are collected.
  /// Tokens of the new batch may be these answers (TokenOfAnswer).
  virtual bool looks_ahead() const { return false; }
  /// The logits themselves, [rows left][vocab_size], for inspection.
  virtual std::vector<float> Logits(const Linear& head) = 0;
  /// Call it after an operation of a batch has thrown. True if nothing of the batch was computed
  /// and it may be begun again: the device will then compute it in another way.
  virtual bool Recover() { return false; }
};

}  // namespace evald::native
