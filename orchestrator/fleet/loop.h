#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <string_view>

#include "orchestrator/fleet/loop_turns.h"

namespace boost::asio {
class io_context;
}

namespace evald {

/// The orchestrator's one event loop. Everything that owns state runs on the thread in Run(); other
/// threads hand work over with Post(). Work on the loop may not wait for a disk, a lock that is
/// held long, or another process, since heartbeats are read here too. Such work belongs to a
/// WorkThread or to the DatabaseThread.
class Loop {
 public:
  Loop();
  ~Loop();

  /// Runs `work` on the loop's thread. Any thread. `from` names the turn if it takes long.
  void Post(std::function<void()> work,
            std::source_location from = std::source_location::current());
  /// Runs `work` once after `delay`, unless the loop stops before. Loop thread only.
  void After(std::chrono::milliseconds delay, std::function<void()> work,
             std::source_location from = std::source_location::current());
  /// Calls `handler` for each SIGINT and SIGTERM from now on. Loop thread, or before Run().
  void OnSignals(std::function<void(int signal)> handler);

  /// Runs until Stop(). An exception of a handler leaves Run().
  void Run();
  void Stop();

  /// Durations of the loop's turns. Loop thread only.
  LoopTurns turns() const;

  /// Handlers of asynchronous operations on this context begin with a LoopTurn.
  boost::asio::io_context& context();

 private:
  friend class LoopTurn;
  struct State;
  std::unique_ptr<State> state_;
};

/// A turn of the loop on this thread, during its lifetime; does nothing if no loop runs there. Post
/// and After make a turn of each call. A turn within a turn is a part of it: if the whole takes
/// longer than a second, a warning names it and its longest part.
class LoopTurn {
 public:
  /// "<what> <of>" is the turn's name. Both outlive it.
  explicit LoopTurn(const char* what, std::string_view of = {});
  ~LoopTurn();
  LoopTurn(const LoopTurn&) = delete;
  LoopTurn& operator=(const LoopTurn&) = delete;

 private:
  const char* what_;
  std::string_view of_;
  Loop::State* loop_;  // null: no loop runs on this thread
  bool outermost_ = false;
  int64_t begin_us_ = 0;
  int64_t begin_processor_ns_ = 0;
};

}  // namespace evald
