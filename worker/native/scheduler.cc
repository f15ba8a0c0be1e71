#include "worker/native/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "evald/error.h"

namespace evald::native {
namespace {

// A shorter common prefix is cheaper to compute again than to copy or wait for.
constexpr int64_t kPrefixMin = 32;

int64_t CommonLength(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  const size_t length = std::min(a.size(), b.size());
  return std::mismatch(a.begin(), a.begin() + static_cast<int64_t>(length), b.begin()).first -
         a.begin();
}

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
    : options_(options), model_(model), cache_(cache) {}

void Scheduler::CheckFits(const Sequence& sequence) const {
  const int64_t needed = PagesFor(sequence.positions_max);
  if (needed <= cache_->capacity()) return;
  const uint64_t page = cache_->layout().bytes();
  throw Error(ErrorKind::kInput,
              fmt::format("{} tokens need {} of key-value cache, the cache has {}",
                          sequence.positions_max, HumanBytes(page * static_cast<uint64_t>(needed)),
                          HumanBytes(page * static_cast<uint64_t>(cache_->capacity()))),
              "raise engine.kv_cache, or lower engine.max_length");
}

void Scheduler::Add(std::unique_ptr<Sequence> sequence) {
  sequence->id = next_id_++;
  waiting_.push_back(std::move(sequence));
}

int64_t Scheduler::Compute(int64_t rows_max) {
  Admit();
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
    chosen[i]->computed += segments[i].count;
    rows += segments[i].count;
  }
  rows_computed_ += rows;
  Retire();
  return rows;
}

void Scheduler::Clear() {
  waiting_.clear();
  active_.clear();
  promised_ = 0;
}

void Scheduler::Admit() {
  for (auto it = waiting_.begin();
       it != waiting_.end() && active_.size() < static_cast<size_t>(options_.slots);) {
    if (StillAwaits(**it)) {
      ++it;
      continue;
    }
    const Prefix prefix = FindPrefix(it->get());
    if ((*it)->awaits != 0) {
      ++it;
      continue;
    }
    if (!Enter(it->get(), prefix)) return;
    active_.push_back(std::move(*it));
    it = waiting_.erase(it);
  }
}

bool Scheduler::StillAwaits(const Sequence& sequence) const {
  if (sequence.awaits == 0) return false;
  return std::any_of(active_.begin(), active_.end(), [&](const auto& other) {
    return other->id == sequence.awaits && other->computed < sequence.awaits_length;
  });
}

// The longest prefix that is there already; or, when an active sequence is going to compute a
// clearly longer one, sets what the sequence waits for.
Scheduler::Prefix Scheduler::FindPrefix(Sequence* sequence) const {
  Prefix best;
  const Sequence* coming = nullptr;
  int64_t coming_length = 0;
  const auto consider = [&](const Sequence& donor) {
    const int64_t common =
        std::min(CommonLength(sequence->tokens, donor.tokens), sequence->logits_from);
    const int64_t ready = std::min(common, donor.computed);
    if (ready > best.length) best = {&donor, ready};
    if (common > coming_length) {
      coming = &donor;
      coming_length = common;
    }
  };
  for (const auto& donor : retained_) consider(*donor);
  for (const auto& donor : active_) consider(*donor);
  sequence->awaits = 0;
  if (coming != nullptr && coming_length >= best.length + kPrefixMin) {
    sequence->awaits = coming->id;
    sequence->awaits_length = coming_length;
  }
  if (best.length < kPrefixMin) best = {};
  return best;
}

int64_t Scheduler::FreePages() const { return cache_->capacity() - cache_->in_use() - promised_; }

// Takes over the prefix and sees that all further pages can be had; false when they cannot yet.
bool Scheduler::Enter(Sequence* sequence, const Prefix& prefix) {
  const int64_t shared = prefix.length / kPagePositions;
  const int64_t needed = PagesFor(sequence->positions_max) - shared;
  std::vector<PageRef> pages;
  PageRef partial;
  if (prefix.donor != nullptr) {
    const std::vector<PageRef>& donated = prefix.donor->pages;
    pages.assign(donated.begin(), donated.begin() + shared);
    if (prefix.length % kPagePositions != 0) partial = donated[static_cast<size_t>(shared)];
  }
  // The partial page is only copied from, but while it is held it takes room. When that is what
  // keeps the only sequence out, it computes its prefix itself.
  while (FreePages() < needed && !retained_.empty()) retained_.pop_front();
  if (FreePages() < needed) {
    if (!active_.empty() || prefix.donor == nullptr) return false;
    pages.clear();
    partial.reset();
    return Enter(sequence, {});
  }
  promised_ += needed;
  sequence->pages = std::move(pages);
  sequence->computed = sequence->reused = prefix.length;
  rows_reused_ += prefix.length;
  if (partial != nullptr) {
    sequence->pages.push_back(cache_->Allocate());
    --promised_;
    std::copy_n(partial.get(), cache_->layout().floats, sequence->pages.back().get());
  }
  for (const PageRef& page : sequence->pages) sequence->page_table.push_back(page.get());
  return true;
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
    Retain(std::move(sequence));
  }
  active_.erase(std::remove(active_.begin(), active_.end(), nullptr), active_.end());
}

// Keeps what was computed, unless another retained sequence begins with the same tokens.
void Scheduler::Retain(std::unique_ptr<Sequence> sequence) {
  sequence->tokens.resize(static_cast<size_t>(sequence->computed));
  sequence->wish = nullptr;
  sequence->on_answer = nullptr;
  const auto covers = [](const Sequence& longer, const Sequence& shorter) {
    return CommonLength(longer.tokens, shorter.tokens) ==
           static_cast<int64_t>(shorter.tokens.size());
  };
  for (auto it = retained_.begin(); it != retained_.end(); ++it) {
    if (!covers(**it, *sequence)) continue;
    std::rotate(it, it + 1, retained_.end());
    return;
  }
  retained_.erase(std::remove_if(retained_.begin(), retained_.end(),
                                 [&](const auto& other) { return covers(*sequence, *other); }),
                  retained_.end());
  retained_.push_back(std::move(sequence));
  if (retained_.size() > static_cast<size_t>(options_.retained)) retained_.pop_front();
}

}  // namespace evald::native
