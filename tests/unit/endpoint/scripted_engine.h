#pragma once

#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "worker/engine/engine.h"

namespace evald::endpoint::test {

/// An engine whose answers a test gives. Any thread may call its own methods.
class ScriptedEngine : public Engine {
 public:
  EngineInfo Info() const override {
    EngineInfo info;
    info.name = "scripted";
    info.max_length = 2048;
    return info;
  }
  void Load(const std::filesystem::path&) override {}
  bool reports_tokens() const override { return true; }

  void Submit(uint64_t tag, Request request) override { Hold(tag, std::move(request), {}); }
  void SubmitWatched(uint64_t tag, Request request, TokenWatch watch) override {
    Hold(tag, std::move(request), std::move(watch));
  }
  std::vector<Finished> Step(std::chrono::milliseconds budget) override {
    std::this_thread::sleep_for(budget);
    const std::lock_guard lock(mutex_);
    if (failure_) {
      const Error failure = *std::exchange(failure_, std::nullopt);
      held_.clear();
      throw failure;
    }
    std::vector<Finished> finished;
    for (const auto& [tag, request] : held_) {
      if (!answering_) break;
      finished.push_back({tag, AnswerTo(request)});
    }
    if (answering_) held_.clear();
    return finished;
  }
  size_t pending() const override {
    const std::lock_guard lock(mutex_);
    return held_.size();
  }
  bool Cancel(uint64_t tag) override {
    const std::lock_guard lock(mutex_);
    if (!cancels_) return false;
    return held_.erase(tag) > 0;
  }
  void CancelAll() override {
    const std::lock_guard lock(mutex_);
    held_.clear();
  }
  std::optional<std::string> Broken() const override {
    const std::lock_guard lock(mutex_);
    return broken_;
  }

  void AnswerFromNowOn() { Set(&answering_, true); }
  void CannotCancel() { Set(&cancels_, false); }
  void Fail(const Error& error) { Set(&failure_, std::optional(error)); }
  void Break() { Set(&broken_, std::optional<std::string>("the device is lost")); }
  void RefuseFromNowOn() { Set(&refusing_, true); }

 private:
  static Generation AnswerTo(const Request& request) {
    Generation generation;
    generation.kind = request.kind;
    generation.text = "answer";
    generation.tokens_out = 1;
    return generation;
  }
  template <typename T>
  void Set(T* to, T value) {
    const std::lock_guard lock(mutex_);
    *to = std::move(value);
  }
  void Hold(uint64_t tag, Request request, TokenWatch) {
    const std::lock_guard lock(mutex_);
    if (refusing_) throw Error(ErrorKind::kInput, "document 5, request 0: too odd");
    held_.emplace(tag, std::move(request));
  }

  mutable std::mutex mutex_;
  std::map<uint64_t, Request> held_;
  std::optional<Error> failure_;
  std::optional<std::string> broken_;
  bool answering_ = false;
  bool cancels_ = true;
  bool refusing_ = false;
};

}  // namespace evald::endpoint::test
