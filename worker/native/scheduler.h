#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "worker/native/kv_cache.h"
#include "worker/native/model.h"

namespace evald::native {

/// A sequence of tokens on its way through the model. When what is wished of the logits after a
/// token is there, `on_answer` may append the next token.
struct Sequence {
  /// Says what is wanted of the logits after the token at `position`, just before it is computed.
  using OnWish = std::function<Wish(int64_t position)>;
  /// Gets the answer. Returns true when the sequence is finished.
  using OnAnswer = std::function<bool(Sequence* sequence, int64_t position, const Answer& answer)>;

  std::vector<int32_t> tokens;
  int64_t logits_from = 0;    ///< first position whose logits are wanted
  int64_t positions_max = 0;  ///< how many positions it may come to compute
  OnWish wish;
  OnAnswer on_answer;

  // Kept by the scheduler.
  uint64_t id = 0;
  int64_t computed = 0;  ///< positions whose keys and values are in pages
  int64_t reused = 0;    ///< of these, taken over from another sequence
  std::vector<PageRef> pages;
  std::vector<float*> page_table;
  bool finished = false;
  uint64_t awaits = 0;        ///< id of the sequence whose prefix it waits for; 0 for none
  int64_t awaits_length = 0;  ///< positions it waits for
};

struct SchedulerOptions {
  int slots = 32;     ///< sequences computed at once
  int retained = 64;  ///< finished sequences whose keys and values are kept for their prefix
};

/// Continuous batching: decides which rows are computed together. Sequences enter in order; one
/// that shares a long prefix with another waits until that one has computed it and takes over its
/// keys and values (whole pages are shared, a partial page is copied). A sequence enters only when
/// the cache has room for all it may come to need, so none is ever thrown out. None of this changes
/// a number. One thread at a time.
class Scheduler {
 public:
  Scheduler(const SchedulerOptions& options, Model* model, KvCache* cache);

  /// Throws Error(kInput) when the cache could never hold it.
  void CheckFits(const Sequence& sequence) const;

  /// Takes a sequence that fits.
  void Add(std::unique_ptr<Sequence> sequence);

  /// Computes one batch of at most `rows_max` rows (or one per sequence that is being continued, if
  /// these are more); returns its rows, 0 when there is nothing to do. What on_answer throws passes
  /// through; call Clear() then.
  int64_t Compute(int64_t rows_max);

  /// Forgets all sequences; finished ones stay available for their prefix.
  void Clear();

  size_t size() const { return waiting_.size() + active_.size(); }
  int64_t rows_computed() const { return rows_computed_; }
  int64_t rows_reused() const { return rows_reused_; }

 private:
  struct Prefix {
    const Sequence* donor = nullptr;
    int64_t length = 0;  ///< positions that can be taken over
  };

  void Admit();
  bool StillAwaits(const Sequence& sequence) const;
  Prefix FindPrefix(Sequence* sequence) const;
  bool Enter(Sequence* sequence, const Prefix& prefix);
  int64_t FreePages() const;
  std::vector<Sequence*> ChooseRows(int64_t rows_max, std::vector<Segment>* segments);
  void AddSegment(Sequence* sequence, int64_t rows, std::vector<Segment>* segments);
  void Retire();
  void Retain(std::unique_ptr<Sequence> sequence);

  SchedulerOptions options_;
  Model* model_;
  KvCache* cache_;
  uint64_t next_id_ = 1;
  int64_t promised_ = 0;  ///< pages that active sequences may still take
  int64_t rows_computed_ = 0;
  int64_t rows_reused_ = 0;
  std::deque<std::unique_ptr<Sequence>> waiting_;
  std::vector<std::unique_ptr<Sequence>> active_;   ///< in order of entry
  std::deque<std::unique_ptr<Sequence>> retained_;  ///< the one used longest ago first
};

}  // namespace evald::native
