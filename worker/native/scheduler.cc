#include "worker/native/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "evald/error.h"

namespace evald::native {
namespace {

// It is cheaper to compute a shorter common prefix again than to wait for it.
constexpr int64_t kAwaitedMin = 8;
// Before its turn, this many sequences for each slot may be preferred to a sequence.
constexpr int64_t kPatience = 64;

int64_t Left(const Sequence& sequence) {
  return static_cast<int64_t>(sequence.tokens.size()) - sequence.computed;
}

// Whether the segment is one row of a token that is not known yet. It counts if its answer is used.
bool IsComing(const Sequence& sequence, const Segment& segment) {
  return segment.tokens == &sequence.coming;
}

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options, Model* model, KvCache* cache)
    : options_(options), model_(model), cache_(cache), waiting_(kPatience * options.slots) {}

Scheduler::~Scheduler() { Clear(); }

void Scheduler::CheckFits(const Sequence& sequence) const {
  const int64_t needed = PagesFor(sequence.positions_max);
  if (needed <= cache_->capacity()) return;
  const uint64_t page = cache_->page_bytes();
  throw Error(ErrorKind::kInput,
              fmt::format("{} tokens need {} of key-value cache, the cache has {}",
                          sequence.positions_max, HumanBytes(page * static_cast<uint64_t>(needed)),
                          HumanBytes(page * static_cast<uint64_t>(cache_->capacity()))),
              "raise engine.kv_cache, or lower engine.max_length; where a checkpoint's "
              "max_new_tokens asks for so many, set `generation_config: ignore`");
}

void Scheduler::Add(std::unique_ptr<Sequence> sequence) {
  sequence->id = next_id_++;
  waiting_.Add(std::move(sequence));
}

int64_t Scheduler::Compute(int64_t rows_max) try {
  Batch batch = Choose(rows_max);
  if (batch.rows == 0 && flying_.asks) {  // all remaining sequences wait for answers
    Land();
    batch = Choose(rows_max);
  }
  if (batch.rows > 0) Launch(&batch);
  Land();
  const int64_t rows = batch.rows;
  flying_ = std::move(batch);
  if (!model_->device()->looks_ahead()) Land();
  return rows;
} catch (...) {
  failed_ = true;
  throw;
}

// Queues the batch. Everything queued after it finds its keys and values.
void Scheduler::Launch(Batch* batch) {
  std::vector<Wish> wishes;
  for (size_t i = 0; i < batch->sequences.size(); ++i) {
    const Segment& segment = batch->segments[i];
    for (int row = segment.logits_from; row < segment.count; ++row) {
      wishes.push_back(batch->sequences[i]->wish(segment.first_position + row));
    }
  }
  batch->asks = !wishes.empty();
  model_->Forward(batch->segments, wishes);
  int64_t answers = 0;
  for (size_t i = 0; i < batch->sequences.size(); ++i) {
    Sequence* sequence = batch->sequences[i];
    const Segment& segment = batch->segments[i];
    const int64_t before = sequence->computed;
    sequence->computed += segment.count;
    if (batch->asks) ++sequence->asked;
    if (!IsComing(*sequence, segment)) rows_computed_ += segment.count;
    answers += segment.count - segment.logits_from;
    sequence->coming = TokenOfAnswer(answers - 1);
    Publish(sequence, before);
  }
}

// Waits for the outstanding answers and gives them to their sequences.
void Scheduler::Land() {
  const Batch batch = std::exchange(flying_, {});
  if (!batch.asks) return;
  std::vector<Answer> answers = model_->device()->Collect();
  size_t next = 0;
  for (size_t i = 0; i < batch.sequences.size(); ++i) {
    Sequence* sequence = batch.sequences[i];
    const Segment& segment = batch.segments[i];
    --sequence->asked;
    for (int row = segment.logits_from; row < segment.count; ++row) {
      Answer& answer = answers.at(next++);
      if (sequence->finished) continue;  // the row was computed in vain
      if (IsComing(*sequence, segment)) ++rows_computed_;
      sequence->finished =
          sequence->on_answer(sequence, segment.first_position + row, std::move(answer));
    }
  }
  Retire();
}

void Scheduler::Clear() {
  flying_ = {};
  model_->device()->Forget();
  waiting_.Clear();
  parked_.clear();
  for (const auto& sequence : active_) {
    for (PrefixTree::Node* node : sequence->path) node->waiting.clear();
  }
  for (const auto& sequence : active_) Leave(sequence.get());
  active_.clear();
  promised_ = 0;
  while (failed_ && tree_.EvictOne()) {
  }
  failed_ = false;
}

// An active sequence stays until the answers that it has asked for are in.
void Scheduler::Cancel(uint64_t owner) {
  waiting_.Drop(owner);
  for (const auto& sequence : active_) {
    for (PrefixTree::Node* node : sequence->path) {
      std::erase_if(node->waiting, [&](const Sequence* parked) { return parked->owner == owner; });
    }
    sequence->finished = sequence->finished || sequence->owner == owner;
  }
  std::erase_if(parked_, [&](const auto& entry) { return entry.first->owner == owner; });
  Retire();
}

// Rows of the sequence that can be computed now.
int64_t Scheduler::Ready(const Sequence& sequence) const {
  if (sequence.finished) return 0;  // it stays until the answers to its last batch are in
  const int64_t left = Left(sequence);
  const bool coming =
      !sequence.waits && sequence.asked > 0 && sequence.computed < sequence.positions_max;
  return left == 0 && coming ? 1 : left;
}

// Admits sequences until the batch is full, and no more: a later sequence finds more of its prefix
// computed.
void Scheduler::Admit(int64_t rows_max) {
  int64_t rows = 0, slots = options_.slots;
  for (const auto& sequence : active_) {
    rows += Ready(*sequence);
    if (!sequence->finished) --slots;
  }
  while (slots > 0 && rows < rows_max) {
    Sequence* sequence = waiting_.Next();
    if (sequence == nullptr) return;
    const PrefixTree::Match match = tree_.Find(sequence->tokens, sequence->logits_from);
    if (Park(sequence, match)) continue;
    if (!Enter(sequence, match)) return;
    waiting_.Follow(*sequence);
    active_.push_back(waiting_.Take(sequence));
    rows += Left(*active_.back());
    --slots;
  }
}

// Sets a sequence aside if an active one will compute a clearly longer prefix than there is now.
bool Scheduler::Park(Sequence* sequence, const PrefixTree::Match& match) {
  if (match.coming_length < match.length + kAwaitedMin || !match.coming->held()) return false;
  const auto awaited = static_cast<int>((match.coming_length - 1) % kPagePositions + 1);
  if (match.coming->ready >= awaited) return false;
  sequence->awaited = awaited;
  match.coming->waiting.push_back(sequence);
  parked_.emplace(sequence, waiting_.Take(sequence));
  return true;
}

void Scheduler::Wake(PrefixTree::Node* node, bool all) {
  std::erase_if(node->waiting, [&](Sequence* sequence) {
    if (!all && node->ready < sequence->awaited) return false;
    waiting_.Add(std::move(parked_.at(sequence)));
    parked_.erase(sequence);
    return true;
  });
}

int64_t Scheduler::FreePages() const { return cache_->capacity() - cache_->in_use() - promised_; }

bool Scheduler::MakeSpace(int64_t pages) {
  while (FreePages() < pages) {
    if (!tree_.EvictOne()) return false;
  }
  return true;
}

// Takes over the prefix and makes sure that all further pages can be had. False if they cannot yet.
bool Scheduler::Enter(Sequence* sequence, const PrefixTree::Match& match) {
  const auto shared = static_cast<int64_t>(match.whole.size());
  const int64_t needed = PagesFor(sequence->positions_max) - shared;
  std::vector<PrefixTree::Node*> donor;
  if (match.partial != nullptr) donor.push_back(match.partial);
  sequence->path = tree_.Hold(sequence->tokens);
  tree_.Hold(donor);
  bool room = MakeSpace(needed);
  if (!room && active_.empty() && !donor.empty()) {
    // A page that is needed only as a copy's source keeps the only sequence out: it is given up.
    tree_.Release(std::exchange(donor, {}));
    room = MakeSpace(needed);
  }
  if (!room) {
    tree_.Release(donor);
    tree_.Release(std::exchange(sequence->path, {}));
    return false;
  }
  promised_ += needed;
  for (const PrefixTree::Node* node : match.whole) sequence->pages.push_back(node->page);
  sequence->computed = shared * kPagePositions;
  if (!donor.empty()) {
    sequence->pages.push_back(cache_->Copy(donor[0]->page));
    --promised_;
    sequence->computed += match.partial_length;
  }
  tree_.Release(donor);
  for (const PageRef& page : sequence->pages) sequence->page_table.push_back(page.get());
  sequence->reused = sequence->computed;
  rows_reused_ += sequence->computed;
  Publish(sequence, shared * kPagePositions);
  return true;
}

// Makes the computed positions from `from` on known to other sequences.
void Scheduler::Publish(Sequence* sequence, int64_t from) {
  const auto pages = static_cast<size_t>(PagesFor(sequence->computed));
  for (auto i = static_cast<size_t>(from / kPagePositions);
       i < std::min(pages, sequence->path.size()); ++i) {
    PrefixTree::Node* node = sequence->path[i];
    const int64_t ready = sequence->computed - static_cast<int64_t>(i) * kPagePositions;
    const auto most = static_cast<int64_t>(node->tokens.size());
    if (std::min(ready, most) <= node->ready) continue;
    node->page = sequence->pages[i];
    node->ready = static_cast<int>(std::min(ready, most));
    Wake(node, false);
  }
}

// The next batch: first sequences that generate, then prompts. Admits sequences to fill it.
Scheduler::Batch Scheduler::Choose(int64_t rows_max) {
  Admit(rows_max);
  Batch batch;
  for (const auto& sequence : active_) {
    if (Ready(*sequence) == 1) AddSegment(sequence.get(), 1, &batch);
  }
  for (const auto& sequence : active_) {
    const int64_t ready = Ready(*sequence);
    if (ready <= 1) continue;
    if (batch.rows >= rows_max) break;
    AddSegment(sequence.get(), std::min(ready, rows_max - batch.rows), &batch);
  }
  return batch;
}

void Scheduler::AddSegment(Sequence* sequence, int64_t rows, Batch* batch) {
  const int64_t end = sequence->computed + rows;
  while (static_cast<int64_t>(sequence->pages.size()) < PagesFor(end)) {
    sequence->pages.push_back(cache_->Allocate());
    sequence->page_table.push_back(sequence->pages.back().get());
    --promised_;
  }
  Segment segment;
  segment.tokens =
      Left(*sequence) > 0 ? sequence->tokens.data() + sequence->computed : &sequence->coming;
  segment.count = static_cast<int>(rows);
  segment.first_position = sequence->computed;
  segment.pages = sequence->page_table.data();
  segment.logits_from =
      static_cast<int>(std::clamp<int64_t>(sequence->logits_from - sequence->computed, 0, rows));
  batch->sequences.push_back(sequence);
  batch->segments.push_back(segment);
  batch->rows += rows;
}

void Scheduler::Retire() {
  for (auto& sequence : active_) {
    if (!sequence->finished || sequence->asked > 0) continue;
    promised_ -= PagesFor(sequence->positions_max) - static_cast<int64_t>(sequence->pages.size());
    // It may have finished before it computed all positions for which others wait.
    for (PrefixTree::Node* node : sequence->path) Wake(node, true);
    Leave(sequence.get());
    sequence.reset();
  }
  active_.erase(std::remove(active_.begin(), active_.end(), nullptr), active_.end());
}

void Scheduler::Leave(Sequence* sequence) {
  tree_.Release(std::exchange(sequence->path, {}));
  sequence->pages.clear();
  while (!options_.keep_prefixes && tree_.EvictOne()) {
  }
}

}  // namespace evald::native
