#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace boost::asio {
class io_context;
}

namespace evald {

/// The orchestrator's one event loop. Everything that owns state runs on the thread in Run(); other
/// threads hand over with Post().
class Loop {
 public:
  Loop();
  ~Loop();

  /// Runs `work` on the loop's thread. From any thread.
  void Post(std::function<void()> work);
  /// Runs `work` once after `delay`, unless the loop ends before. Loop thread only.
  void After(std::chrono::milliseconds delay, std::function<void()> work);
  /// Calls `handler` for each SIGINT and SIGTERM from now on. Loop thread, or before Run().
  void OnSignals(std::function<void(int signal)> handler);

  /// Runs until Stop(). An exception that leaves a handler leaves Run().
  void Run();
  void Stop();

  boost::asio::io_context& context();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace evald
