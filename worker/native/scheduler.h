#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "worker/native/kv_cache.h"
#include "worker/native/model.h"
#include "worker/native/prefix_tree.h"
#include "worker/native/waiting_tree.h"

namespace evald::native {

/// A sequence of tokens on its way through the model. When the answer to a wish arrives,
/// `on_answer` may append the next token.
struct Sequence {
  /// Called just before the token at `position` is computed: returns the answer wanted from the
  /// logits after it.
  using OnWish = std::function<Wish(int64_t position)>;
  /// Called with the answer. Returns true if the sequence is finished.
  using OnAnswer = std::function<bool(Sequence* sequence, int64_t position, Answer&& answer)>;

  std::vector<int32_t> tokens;
  int64_t logits_from = 0;    ///< the first position with wanted logits
  int64_t positions_max = 0;  ///< the most positions that it may compute
  bool waits = false;         ///< on_answer chooses tokens: no batch is queued before it
  OnWish wish;
  OnAnswer on_answer;

  uint64_t owner = 0;  ///< the tag of its request

  // Set by the scheduler.
  uint64_t id = 0;
  int64_t due = 0;       ///< set by WaitingTree
  int64_t computed = 0;  ///< positions whose keys and values are in pages
  int64_t reused = 0;    ///< of these, positions taken over from other sequences
  std::vector<PageRef> pages;
  std::vector<Page*> page_table;
  std::vector<PrefixTree::Node*> path;  ///< of the tokens that it began with
  bool finished = false;
  int asked = 0;       ///< batches with this sequence whose answers are outstanding
  int32_t coming = 0;  ///< TokenOfAnswer of its next token, until that is known
  int awaited = 0;     ///< positions that it waits for in a page
};

struct SchedulerOptions {
  int slots = 32;             ///< sequences computed at once
  bool keep_prefixes = true;  ///< computed positions stay until their memory is needed
};

/// Continuous batching: decides which rows are computed together. Sequences enter by prefix, then
/// by length (WaitingTree). If a sequence shares a long prefix with another, it waits until the
/// other has computed it and takes over its keys and values (PrefixTree: whole pages are shared, a
/// partial page is copied). So each prefix is computed once, and each sequence adds only its own
/// part. A sequence enters only if the cache has space for all positions that it may need, so no
/// sequence has to leave before its end. Pages that only earlier sequences used are given up for
/// it. None of this changes an answer. One thread at a time.
///
/// If the device looks ahead, a batch is queued before the answers to the last one are there. All
/// generating sequences, except those that wait, go on with the tokens that these answers will
/// give. A sequence that turns out to be finished has then computed one row in vain.
class Scheduler {
 public:
  Scheduler(const SchedulerOptions& options, Model* model, KvCache* cache);
  ~Scheduler();

  /// Throws Error(kInput) if the cache could never hold the sequence.
  void CheckFits(const Sequence& sequence) const;

  /// Takes a sequence that fits.
  void Add(std::unique_ptr<Sequence> sequence);

  /// Computes one batch of at most `rows_max` rows (or one row per generating sequence, if these
  /// are more). Returns the number of its rows; 0 if there is nothing to do. Gives its answers, or
  /// those of the last batch when looking ahead, to the sequences. Passes on exceptions of
  /// on_answer; then call Clear().
  int64_t Compute(int64_t rows_max);

  /// Forgets all sequences. The prefixes of finished ones stay available, but not after an error.
  void Clear();

  /// Forgets the sequences of one owner, whose callbacks are not called again.
  void Cancel(uint64_t owner);

  size_t size() const { return waiting_.size() + parked_.size() + active_.size(); }
  int64_t rows_computed() const { return rows_computed_; }
  int64_t rows_reused() const { return rows_reused_; }

 private:
  /// Rows that are computed together. Those of one sequence are a segment.
  struct Batch {
    std::vector<Sequence*> sequences;
    std::vector<Segment> segments;
    int64_t rows = 0;
    bool asks = false;  ///< the logits of some rows are wanted
  };

  int64_t Ready(const Sequence& sequence) const;
  void Admit(int64_t rows_max);
  bool Park(Sequence* sequence, const PrefixTree::Match& match);
  void Wake(PrefixTree::Node* node, bool all);
  bool Enter(Sequence* sequence, const PrefixTree::Match& match);
  bool MakeSpace(int64_t pages);
  int64_t FreePages() const;
  Batch Choose(int64_t rows_max);
  void AddSegment(Sequence* sequence, int64_t rows, Batch* batch);
  void Launch(Batch* batch);
  void Land();
  void Publish(Sequence* sequence, int64_t from);
  void Retire();
  void Leave(Sequence* sequence);

  SchedulerOptions options_;
  Model* model_;
  KvCache* cache_;
  uint64_t next_id_ = 1;
  int64_t promised_ = 0;  ///< pages that active sequences may still take
  int64_t rows_computed_ = 0;
  int64_t rows_reused_ = 0;
  PrefixTree tree_;
  WaitingTree waiting_;
  /// Sequences that wait for a page which an active sequence computes.
  std::unordered_map<Sequence*, std::unique_ptr<Sequence>> parked_;
  std::vector<std::unique_ptr<Sequence>> active_;  ///< in order of entry
  /// The last batch, if its answers are outstanding
  Batch flying_;
  bool failed_ = false;  ///< after an error, the content of some pages is unknown
};

}  // namespace evald::native
