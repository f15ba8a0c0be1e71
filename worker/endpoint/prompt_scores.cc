#include "worker/endpoint/prompt_scores.h"

#include <algorithm>
#include <utility>

#include "evald/error.h"

namespace evald::endpoint {
namespace {

using Tokens = std::vector<int32_t>;

// It is cheaper to compute a shorter common prefix again than to wait for it.
constexpr size_t kAwaitedMin = 32;

size_t CommonPrefix(const Tokens& a, const Tokens& b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                             a.begin());
}

struct Remembered {
  Tokens tokens;
  int top = 0;
  std::vector<TokenReport> reports;
};

struct Pending {
  ScoreWish wish;
  std::vector<TokenReport> reports;  // those known, then those of the engine
  std::vector<ScoreWish> waiting;    // for the prefix that they share with it
};

void CutTop(int top, std::vector<TokenReport>* reports) {
  for (TokenReport& report : *reports) {
    if (report.top.size() > static_cast<size_t>(top)) report.top.resize(static_cast<size_t>(top));
  }
}

}  // namespace

struct PromptScores::State : std::enable_shared_from_this<PromptScores::State> {
  bool Ask(std::vector<ScoreWish> wishes);
  std::vector<TokenReport> Known(const ScoreWish& wish) const;
  Pending* WorthWaitingFor(const ScoreWish& wish, size_t known) const;
  EngineWork WorkFor(const std::shared_ptr<Pending>& pending);
  void Finished(const std::shared_ptr<Pending>& pending, std::optional<Error> refused);
  void Remember(const Pending& done);

  EngineQueue* queue = nullptr;
  bool reuse = false;
  size_t remembered_max = 0;
  std::mutex mutex;
  std::list<Remembered> remembered;  // newest first; under the mutex, as are the next two
  size_t remembered_tokens = 0;
  std::vector<std::shared_ptr<Pending>> under_way;
};

PromptScores::PromptScores(EngineQueue* queue, bool deterministic, size_t remembered_max)
    : state_(std::make_shared<State>()) {
  state_->queue = queue;
  state_->reuse = deterministic;
  state_->remembered_max = remembered_max;
}

PromptScores::~PromptScores() = default;

bool PromptScores::Ask(std::vector<ScoreWish> wishes) { return state_->Ask(std::move(wishes)); }

bool PromptScores::State::Ask(std::vector<ScoreWish> wishes) {
  std::vector<std::shared_ptr<Pending>> done, begun;
  {
    const std::lock_guard lock(mutex);
    std::vector<std::pair<Pending*, ScoreWish>> waiters;
    std::vector<EngineWork> works;
    for (ScoreWish& wish : wishes) {
      std::vector<TokenReport> known = Known(wish);
      if (Pending* other = WorthWaitingFor(wish, known.size() + 1)) {
        waiters.emplace_back(other, std::move(wish));
        continue;
      }
      auto pending = std::make_shared<Pending>();
      pending->wish = std::move(wish);
      pending->reports = std::move(known);
      if (pending->reports.size() + 1 == pending->wish.tokens.size()) {
        done.push_back(std::move(pending));
        continue;
      }
      works.push_back(WorkFor(pending));
      begun.push_back(pending);
      under_way.push_back(std::move(pending));
    }
    if (!queue->Add(std::move(works))) {
      std::erase_if(under_way, [&](const auto& pending) {
        return std::find(begun.begin(), begun.end(), pending) != begun.end();
      });
      return false;
    }
    for (auto& [other, wish] : waiters) other->waiting.push_back(std::move(wish));
  }
  for (const auto& pending : done) pending->wish.done({std::move(pending->reports), std::nullopt});
  return true;
}

// The reports of the longest prefix that an earlier prompt shares.
std::vector<TokenReport> PromptScores::State::Known(const ScoreWish& wish) const {
  const Remembered* best = nullptr;
  size_t longest = 1;
  for (const Remembered& entry : remembered) {
    if (entry.top < wish.top) continue;
    const size_t common = CommonPrefix(entry.tokens, wish.tokens);
    if (common <= longest) continue;
    longest = common;
    best = &entry;
  }
  if (best == nullptr) return {};
  std::vector<TokenReport> known(best->reports.begin(),
                                 best->reports.begin() + static_cast<int64_t>(longest - 1));
  CutTop(wish.top, &known);
  return known;
}

Pending* PromptScores::State::WorthWaitingFor(const ScoreWish& wish, size_t known) const {
  Pending* best = nullptr;
  size_t longest = known + kAwaitedMin - 1;
  for (const auto& pending : under_way) {
    if (!reuse || pending->wish.top < wish.top) continue;
    const size_t common = CommonPrefix(pending->wish.tokens, wish.tokens);
    if (common <= longest) continue;
    longest = common;
    best = pending.get();
  }
  return best;
}

EngineWork PromptScores::State::WorkFor(const std::shared_ptr<Pending>& pending) {
  const Tokens& tokens = pending->wish.tokens;
  const auto split = tokens.begin() + static_cast<int64_t>(pending->reports.size()) + 1;
  EngineWork work;
  work.request.kind = RequestKind::kLoglikelihood;
  work.request.context_tokens.assign(tokens.begin(), split);
  work.request.continuation_tokens.assign(split, tokens.end());
  work.watch.emplace();
  work.watch->top = pending->wish.top;
  work.watch->on_token = [pending](TokenReport report) {
    pending->reports.push_back(std::move(report));
  };
  work.wanted = pending->wish.wanted;
  work.done = [self = shared_from_this(), pending](evald::Finished finished) {
    self->Finished(pending, std::move(finished.refused));
  };
  return work;
}

void PromptScores::State::Finished(const std::shared_ptr<Pending>& pending,
                                   std::optional<Error> refused) {
  std::vector<ScoreWish> waiting;
  {
    const std::lock_guard lock(mutex);
    std::erase(under_way, pending);
    waiting = std::move(pending->waiting);
    if (!refused && reuse) Remember(*pending);
  }
  if (refused) {
    pending->wish.done({{}, std::move(refused)});
  } else {
    pending->wish.done({std::move(pending->reports), std::nullopt});
  }
  for (ScoreWish& wish : waiting) {
    const auto done = wish.done;
    std::vector<ScoreWish> one;
    one.push_back(std::move(wish));
    if (!Ask(std::move(one)))
      done({{}, Error(ErrorKind::kInfrastructure, "the endpoint has too much to do")});
  }
}

void PromptScores::State::Remember(const Pending& done) {
  const Tokens& tokens = done.wish.tokens;
  if (tokens.size() > remembered_max) return;
  const auto holds = [&](const Remembered& entry) {
    return entry.top <= done.wish.top && CommonPrefix(entry.tokens, tokens) == entry.tokens.size();
  };
  for (auto it = remembered.begin(); it != remembered.end();) {
    if (holds(*it)) {
      remembered_tokens -= it->tokens.size();
      it = remembered.erase(it);
    } else {
      ++it;
    }
  }
  remembered.push_front({tokens, done.wish.top, done.reports});
  remembered_tokens += tokens.size();
  while (remembered_tokens > remembered_max) {
    remembered_tokens -= remembered.back().tokens.size();
    remembered.pop_back();
  }
}

}  // namespace evald::endpoint
