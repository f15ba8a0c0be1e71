#include "worker/native/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "evald/error.h"

namespace evald::native {
namespace {

// A shorter common prefix is cheaper to compute again than to wait for.
constexpr int64_t kAwaitedMin = 8;
// So many sequences for each slot may be preferred to one before it is its turn.
constexpr int64_t kPatience = 64;

std::vector<Wish> Wishes(const std::vector<Sequence*>& sequences,
                         const std::vector<Segment>& segments) {
  std::vector<Wish> wishes;
  for (size_t i = 0; i < sequences.size(); ++i) {
    for (int row = segments[i].logits_from; row < segments[i].count; ++row) {
      wishes.push_back(sequences[i]->wish(segments[i].first_position + row));
    }
  }
  return wishes;
}

int64_t Left(const Sequence& sequence) {
  return static_cast<int64_t>(sequence.tokens.size()) - sequence.computed;
}

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options, Model* model, KvCache* cache)
    : options_(options), model_(model), cache_(cache), waiting_(kPatience * options.slots) {}

void Scheduler::CheckFits(const Sequence& sequence) const {
  const int64_t needed = PagesFor(sequence.positions_max);
  if (needed <= cache_->capacity()) return;
  const uint64_t page = cache_->page_bytes();
  throw Error(ErrorKind::kInput,
              fmt::format("{} tokens need {} of key-value cache, the cache has {}",
                          sequence.positions_max, HumanBytes(page * static_cast<uint64_t>(needed)),
                          HumanBytes(page * static_cast<uint64_t>(cache_->capacity()))),
              "raise engine.kv_cache, or lower engine.max_length");
}

void Scheduler::Add(std::unique_ptr<Sequence> sequence) {
  sequence->id = next_id_++;
  waiting_.Add(std::move(sequence));
}

int64_t Scheduler::Compute(int64_t rows_max) {
  Admit(rows_max);
  std::vector<Segment> segments;
  const std::vector<Sequence*> chosen = ChooseRows(rows_max, &segments);
  if (chosen.empty()) return 0;
  const std::vector<Answer> answers = model_->Forward(segments, Wishes(chosen, segments));
  size_t next = 0;
  for (size_t i = 0; i < chosen.size(); ++i) {
    for (int row = segments[i].logits_from; row < segments[i].count; ++row) {
      const Answer& answer = answers[next++];
      if (chosen[i]->finished) continue;
      chosen[i]->finished =
          chosen[i]->on_answer(chosen[i], segments[i].first_position + row, answer);
    }
  }
  int64_t rows = 0;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const int64_t before = chosen[i]->computed;
    chosen[i]->computed += segments[i].count;
    Publish(chosen[i], before);
    rows += segments[i].count;
  }
  rows_computed_ += rows;
  Retire();
  return rows;
}

void Scheduler::Clear() {
  waiting_.Clear();
  parked_.clear();
  for (const auto& sequence : active_) {
    for (PrefixTree::Node* node : sequence->path) node->waiting.clear();
  }
  for (const auto& sequence : active_) Leave(sequence.get());
  active_.clear();
  promised_ = 0;
}

// Lets in what fills the batch and no more: who comes later finds more of its prefix computed.
void Scheduler::Admit(int64_t rows_max) {
  int64_t rows = 0;
  for (const auto& sequence : active_) rows += Left(*sequence);
  while (active_.size() < static_cast<size_t>(options_.slots) && rows < rows_max) {
    Sequence* sequence = waiting_.Next();
    if (sequence == nullptr) return;
    const PrefixTree::Match match = tree_.Find(sequence->tokens, sequence->logits_from);
    if (Park(sequence, match)) continue;
    if (!Enter(sequence, match)) return;
    waiting_.Follow(*sequence);
    active_.push_back(waiting_.Take(sequence));
    rows += Left(*active_.back());
  }
}

// Sets it aside when an active sequence is going to compute a clearly longer prefix than is there.
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

bool Scheduler::MakeRoom(int64_t pages) {
  while (FreePages() < pages) {
    if (!tree_.EvictOne()) return false;
  }
  return true;
}

// Takes over the prefix and sees that all further pages can be had; false when they cannot yet.
bool Scheduler::Enter(Sequence* sequence, const PrefixTree::Match& match) {
  const auto shared = static_cast<int64_t>(match.whole.size());
  const int64_t needed = PagesFor(sequence->positions_max) - shared;
  std::vector<PrefixTree::Node*> donor;
  if (match.partial != nullptr) donor.push_back(match.partial);
  sequence->path = tree_.Hold(sequence->tokens);
  tree_.Hold(donor);
  bool room = MakeRoom(needed);
  if (!room && active_.empty() && !donor.empty()) {
    // The page that is only copied from is what keeps the only sequence out: it does without.
    tree_.Release(std::exchange(donor, {}));
    room = MakeRoom(needed);
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

// Makes the positions from `from` on that are computed known to others.
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

std::vector<Sequence*> Scheduler::ChooseRows(int64_t rows_max, std::vector<Segment>* segments) {
  std::vector<Sequence*> chosen;
  int64_t rows = 0;
  for (const auto& sequence : active_) {
    if (Left(*sequence) != 1) continue;
    AddSegment(sequence.get(), 1, segments);
    chosen.push_back(sequence.get());
    ++rows;
  }
  for (const auto& sequence : active_) {
    if (Left(*sequence) <= 1) continue;
    const int64_t count = std::min(Left(*sequence), rows_max - rows);
    if (count <= 0) break;
    AddSegment(sequence.get(), count, segments);
    chosen.push_back(sequence.get());
    rows += count;
  }
  return chosen;
}

void Scheduler::AddSegment(Sequence* sequence, int64_t rows, std::vector<Segment>* segments) {
  const int64_t end = sequence->computed + rows;
  while (static_cast<int64_t>(sequence->pages.size()) < PagesFor(end)) {
    sequence->pages.push_back(cache_->Allocate());
    sequence->page_table.push_back(sequence->pages.back().get());
    --promised_;
  }
  Segment segment;
  segment.tokens = sequence->tokens.data() + sequence->computed;
  segment.count = static_cast<int>(rows);
  segment.first_position = sequence->computed;
  segment.pages = sequence->page_table.data();
  segment.logits_from =
      static_cast<int>(std::clamp<int64_t>(sequence->logits_from - sequence->computed, 0, rows));
  segments->push_back(segment);
}

void Scheduler::Retire() {
  for (auto& sequence : active_) {
    if (!sequence->finished) continue;
    promised_ -= PagesFor(sequence->positions_max) - static_cast<int64_t>(sequence->pages.size());
    // It may have finished before it computed all that others wait for.
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
