#pragma once

#include <cstdint>
#include <vector>

#include "worker/native/answer.h"
#include "worker/native/kv_cache.h"
#include "worker/native/weights.h"

namespace evald::native {

/// Stands for a token that is not known yet: the one that the last Ask's answer to that row gives
/// (Device::looks_ahead).
constexpr int32_t TokenOfAnswer(int64_t row) { return static_cast<int32_t>(-1 - row); }

/// Consecutive tokens of one sequence that are to be computed.
struct Segment {
  const int32_t* tokens = nullptr;  ///< below vocab_size, or TokenOfAnswer
  int count = 0;
  int64_t first_position = 0;
  Page* const* pages = nullptr;  ///< the sequence's pages, from position 0 to the last token
  int logits_from = 0;           ///< logits of rows [logits_from, count) are wanted
};

/// The rows of activations that a device holds while it computes a batch, one row a token.
enum class Rows {
  kHidden,     ///< the residual stream
  kNormed,     ///< what goes into attention or feed-forward part
  kQkv,        ///< queries, keys and values
  kAttended,   ///< what attention makes of the values
  kInner,      ///< what goes into the activation
  kActivated,  ///< what comes out of it
  kOut,        ///< what attention or feed-forward part adds to the residual stream
};

/// What a model is computed on: has the memory for keys and values, holds the activations of one
/// batch and has the operations that models are made of. Model calls them in order; they may run
/// later, but Collect and Logits wait. The numbers of a row depend on its sequence's tokens up to
/// it, and on nothing else of the batch. One thread at a time.
class Device : public PageMemory {
 public:
  /// Begins a batch of these segments' rows, whose earlier positions must have been computed.
  virtual void Begin(const std::vector<Segment>& segments) = 0;
  /// kHidden = the tokens' rows of the embedding.
  virtual void Embed(const Matrix& embedding) = 0;
  virtual void Normalize(const NormWeights& norm, Rows from, Rows to) = 0;
  virtual void Multiply(const Linear& linear, Rows from, Rows to) = 0;
  /// Normalizes the queries and keys of kQkv (HeadNorm).
  virtual void NormalizeHeads(const NormWeights& query, const NormWeights& key) = 0;
  /// Rotates the queries and keys of kQkv by their positions.
  virtual void Rotate() = 0;
  /// Writes the keys and values of kQkv to the segments' pages.
  virtual void StoreKeysAndValues(int64_t layer) = 0;
  /// Drops the rows whose logits are not wanted from kHidden and kQkv. Returns how many are left.
  virtual int64_t KeepWanted() = 0;
  /// kAttended = causal attention of kQkv's queries over the pages. Each position sees the last
  /// `window` positions, its own included; 0 for all.
  virtual void Attend(int64_t layer, int64_t window) = 0;
  /// kActivated = activation(kInner), gated where the model is.
  virtual void Activate() = 0;
  /// kOut = the weighted sum of the experts that `layer`'s router chooses for each row of kNormed.
  virtual void MixExperts(const LayerWeights& layer) = 0;
  /// kHidden += kOut.
  virtual void AddOut() = 0;
  /// What is wished of kNormed times the head, one wish for each row that is left; see Collect.
  virtual void Ask(const Linear& head, const std::vector<Wish>& wishes) = 0;
  /// Waits for the answers to the first Ask whose answers have not been collected.
  virtual std::vector<Answer> Collect() = 0;
  /// Answers that have not been collected never will be.
  virtual void Forget() = 0;
  /// Whether a batch may be asked before the answers to the one before it are collected (not two),
  /// and have tokens that are these answers.
  virtual bool looks_ahead() const { return false; }
  /// kNormed times the head itself, [rows left][vocab_size], for looking at.
  virtual std::vector<float> Logits(const Linear& head) = 0;
  /// After an operation of a batch has thrown: true where nothing of the batch has been computed,
  /// and it may be begun anew, since it will go another way.
  virtual bool Recover() { return false; }
};

}  // namespace evald::native
