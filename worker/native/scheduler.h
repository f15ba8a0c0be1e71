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

/// A sequence of tokens on its way through the model. When what is wished of the logits after a
/// token is there, `on_answer` may append the next token.
struct Sequence {
  /// Says what is wanted of the logits after the token at `position`, just before it is computed.
  using OnWish = std::function<Wish(int64_t position)>;
  /// Gets the answer. Returns true when the sequence is finished.
  using OnAnswer = std::function<bool(Sequence* sequence, int64_t position, Answer&& answer)>;

  std::vector<int32_t> tokens;
  int64_t logits_from = 0;    ///< first position whose logits are wanted
  int64_t positions_max = 0;  ///< how many positions it may come to compute
  bool waits = false;         ///< on_answer chooses tokens: no device can go on before it has
  OnWish wish;
  OnAnswer on_answer;

  // Kept by the scheduler.
  uint64_t id = 0;
  int64_t due = 0;       ///< WaitingTree's
  int64_t computed = 0;  ///< positions whose keys and values are in pages
  int64_t reused = 0;    ///< of these, taken over from other sequences
  std::vector<PageRef> pages;
  std::vector<Page*> page_table;
  std::vector<PrefixTree::Node*> path;  ///< of the tokens it came with
  bool finished = false;
  int asked = 0;       ///< batches it is in whose answers are not there yet
  int32_t coming = 0;  ///< TokenOfAnswer of its next token, while that is not known
  int awaited = 0;     ///< positions that the page it waits for must have
};

struct SchedulerOptions {
  int slots = 32;             ///< sequences computed at once
  bool keep_prefixes = true;  ///< what was computed stays until its memory is needed
};

/// Continuous batching: decides which rows are computed together. Sequences enter by prefix, then
/// by length (WaitingTree). One that shares a long prefix with another waits until that one has
/// computed it and takes over its keys and values (PrefixTree: whole pages are shared, a partial
/// page is copied), so each prefix is computed once and each sequence only adds what is its own. A
/// sequence enters only when the cache has room for all it may come to need, so none is ever thrown
/// out; pages that only earlier sequences used make room for it. None of this changes a number. One
/// thread at a time.
///
/// Where the device looks ahead, a batch is queued before the answers to the one before it are
/// there: all that generate, but for those that wait, go on with the tokens that these will give.
/// One that turns out to be finished has then computed one row in vain.
class Scheduler {
 public:
  Scheduler(const SchedulerOptions& options, Model* model, KvCache* cache);
  ~Scheduler();

  /// Throws Error(kInput) when the cache could never hold it.
  void CheckFits(const Sequence& sequence) const;

  /// Takes a sequence that fits.
  void Add(std::unique_ptr<Sequence> sequence);

  /// Computes one batch of at most `rows_max` rows (or one per sequence that is being continued, if
  /// these are more); returns its rows, 0 when there is nothing to do. Gives the answers to it, or,
  /// looking ahead, to the one before. What on_answer throws passes through; call Clear() then.
  int64_t Compute(int64_t rows_max);

  /// Forgets all sequences; finished ones stay available for their prefix, but for those before an
  /// error.
  void Clear();

  size_t size() const { return waiting_.size() + parked_.size() + active_.size(); }
  int64_t rows_computed() const { return rows_computed_; }
  int64_t rows_reused() const { return rows_reused_; }

 private:
  /// Rows that are computed together; those of one sequence are a segment.
  struct Batch {
    std::vector<Sequence*> sequences;
    std::vector<Segment> segments;
    int64_t rows = 0;
    bool asks = false;  ///< some rows' logits are wanted
  };

  int64_t Ready(const Sequence& sequence) const;
  void Admit(int64_t rows_max);
  bool Park(Sequence* sequence, const PrefixTree::Match& match);
  void Wake(PrefixTree::Node* node, bool all);
  bool Enter(Sequence* sequence, const PrefixTree::Match& match);
  bool MakeRoom(int64_t pages);
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
  /// Those that wait for a page which an active sequence computes.
  std::unordered_map<Sequence*, std::unique_ptr<Sequence>> parked_;
  std::vector<std::unique_ptr<Sequence>> active_;  ///< in order of entry
  Batch flying_;                                   ///< whose answers are not there yet, if it asks
  bool failed_ = false;                            ///< some pages may hold anything
};

}  // namespace evald::native
