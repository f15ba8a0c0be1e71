#include "worker/endpoint/engine_queue.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "evald/error.h"

namespace evald::endpoint {
namespace {

// New requests wait for the end of a step.
constexpr std::chrono::milliseconds kStep{5};
constexpr int64_t kLookEveryUs = 100'000;

size_t TokensOf(const Request& request) {
  const auto generated = request.kind == RequestKind::kGenerateUntil
                             ? static_cast<size_t>(request.sampling.max_gen_toks)
                             : size_t{0};
  return request.context_tokens.size() + request.continuation_tokens.size() + generated;
}

// Engines name a request by its document, which a caller of the endpoint does not know.
Error WithoutName(const Error& error, const Request& request) {
  const std::string name = fmt::format("document {}, request {}: ", request.doc_id, request.idx);
  if (!error.message().starts_with(name)) return error;
  return Error(error.kind(), error.message().substr(name.size()), error.remedy());
}

}  // namespace

EngineQueue::EngineQueue(Engine* engine, const Limits& limits, std::function<void()> broken)
    : engine_(engine), limits_(limits), broken_(std::move(broken)), thread_([this] { Run(); }) {}

EngineQueue::~EngineQueue() { Stop(); }

bool EngineQueue::Add(std::vector<EngineWork> works) {
  std::vector<Held> held;
  size_t tokens = 0;
  for (EngineWork& work : works) {
    const size_t of_work = TokensOf(work.request);
    tokens += of_work;
    held.push_back({std::move(work), of_work});
  }
  const std::lock_guard lock(mutex_);
  if (stopping_ || works_ + held.size() > limits_.works_max ||
      tokens_ + tokens > limits_.tokens_max) {
    return false;
  }
  works_ += held.size();
  tokens_ += tokens;
  std::move(held.begin(), held.end(), std::back_inserter(new_));
  changed_.notify_all();
  return true;
}

size_t EngineQueue::under_way() const {
  const std::lock_guard lock(mutex_);
  return works_;
}

bool EngineQueue::ended() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

void EngineQueue::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void EngineQueue::Run() {
  while (TakeNew()) {
    if (MonotonicMicros() >= next_look_us_) {
      DropUnwanted();
      next_look_us_ = MonotonicMicros() + kLookEveryUs;
    }
    Step();
    if (const auto reason = engine_->Broken()) {
      log::Error("{}; the endpoint ends", *reason);
      broken_();
      break;
    }
  }
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (Held& held : std::exchange(new_, {})) held_.emplace(next_tag_++, std::move(held));
  }
  engine_->CancelAll();
  FailAll(Error(ErrorKind::kInfrastructure, "the endpoint ends"));
}

// Gives new requests to the engine; waits for some if there is nothing to do. False: it ends.
bool EngineQueue::TakeNew() {
  std::vector<Held> taken;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopping_ || !new_.empty() || !held_.empty(); });
    if (stopping_) return false;
    taken = std::exchange(new_, {});
  }
  for (Held& held : taken) Submit(next_tag_++, std::move(held));
  return true;
}

void EngineQueue::Submit(uint64_t tag, Held held) {
  Request request = std::move(held.work.request);
  held.work.request = Request();
  held.work.request.doc_id = request.doc_id;  // all that is left to do is to name it
  held.work.request.idx = request.idx;
  std::optional<TokenWatch> watch = std::exchange(held.work.watch, std::nullopt);
  held_.emplace(tag, std::move(held));
  try {
    if (watch) {
      engine_->SubmitWatched(tag, std::move(request), std::move(*watch));
    } else {
      engine_->Submit(tag, std::move(request));
    }
  } catch (const Error& e) {
    End(tag, {tag, {}, e});
  }
}

void EngineQueue::Step() {
  try {
    for (Finished& finished : engine_->Step(kStep)) {
      const uint64_t tag = finished.tag;
      End(tag, std::move(finished));
    }
  } catch (const Error& e) {
    log::Error("{}", e.what());
    FailAll(e);
  } catch (const std::exception& e) {
    log::Error("{}", e.what());
    FailAll(Error(ErrorKind::kInternal, e.what()));
  }
}

void EngineQueue::DropUnwanted() {
  for (auto it = held_.begin(); it != held_.end();) {
    Held& held = it->second;
    if (held.dropped || held.work.wanted()) {
      ++it;
      continue;
    }
    held.work.done(
        {it->first, {}, Error(ErrorKind::kInfrastructure, "the client has ended the connection")});
    held.dropped = true;
    if (!engine_->Cancel(it->first)) {
      ++it;
      continue;
    }
    Release(held);
    it = held_.erase(it);
  }
}

void EngineQueue::FailAll(const Error& error) {
  while (!held_.empty()) {
    const uint64_t tag = held_.begin()->first;
    End(tag, {tag, {}, error});
  }
}

void EngineQueue::Release(const Held& held) {
  const std::lock_guard lock(mutex_);
  --works_;
  tokens_ -= held.tokens;
}

void EngineQueue::End(uint64_t tag, Finished finished) {
  const auto found = held_.find(tag);
  if (found == held_.end()) return;
  const Held held = std::move(found->second);
  held_.erase(found);
  Release(held);
  if (held.dropped) return;
  if (finished.refused) finished.refused = WithoutName(*finished.refused, held.work.request);
  held.work.done(std::move(finished));
}

}  // namespace evald::endpoint
