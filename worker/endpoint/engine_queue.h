#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "worker/engine/engine.h"

namespace evald::endpoint {

/// A request for the engine.
struct EngineWork {
  Request request;
  std::optional<TokenWatch> watch;
  /// Whether somebody still waits for the answer. Called now and then.
  std::function<bool()> wanted;
  /// Called once, with the answer or the reason why there is none. Must not throw.
  std::function<void(Finished finished)> done;
};

/// Gives requests to an engine as they come, on a thread of its own, which owns the engine from
/// then on and makes all callbacks. Forgets requests that nobody waits for.
class EngineQueue {
 public:
  struct Limits {
    size_t works_max = 8192;               ///< requests under way
    size_t tokens_max = size_t{32} << 20;  ///< of these, with the tokens that they may generate
  };

  /// `broken` is called on the engine's thread if the engine can answer nothing any more.
  EngineQueue(Engine* engine, const Limits& limits, std::function<void()> broken);
  /// Calls Stop().
  ~EngineQueue();

  /// Takes all of `works`, or none. False: there are too many. Any thread.
  bool Add(std::vector<EngineWork> works);

  /// Ends all requests with an error, and the thread.
  void Stop();

  size_t under_way() const;
  /// Whether it takes no more requests, ever: it was stopped, or the engine broke.
  bool ended() const;

 private:
  struct Held {
    EngineWork work;
    size_t tokens = 0;
    bool dropped = false;  ///< done was called, and the engine will answer nevertheless
  };

  void Run();
  bool TakeNew();
  void Submit(uint64_t tag, Held held);
  void Step();
  void DropUnwanted();
  void FailAll(const Error& error);
  void Release(const Held& held);
  void End(uint64_t tag, Finished finished);

  Engine* engine_;
  Limits limits_;
  std::function<void()> broken_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Held> new_;  ///< under mutex_, as are the next three
  size_t works_ = 0;
  size_t tokens_ = 0;
  bool stopping_ = false;
  std::map<uint64_t, Held> held_;  ///< by tag; engine's thread, as are the rest
  uint64_t next_tag_ = 1;
  int64_t next_look_us_ = 0;
  std::thread thread_;  ///< last: it uses the others
};

}  // namespace evald::endpoint
