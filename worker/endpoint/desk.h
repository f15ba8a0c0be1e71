#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace evald::endpoint {

/// A few threads that read calls and write answers, so that neither the HTTP server's thread nor
/// the engine's waits for that. Work is done in the order in which it came.
class Desk {
 public:
  explicit Desk(int threads);
  /// Calls Stop().
  ~Desk();

  /// Any thread. `work` must not throw. Dropped after Stop.
  void Post(std::function<void()> work);
  /// Does all work that has come, and ends the threads.
  void Stop();

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> works_;  ///< under mutex_
  bool stopping_ = false;                    ///< under mutex_
  std::vector<std::thread> threads_;         ///< last: they use the others
};

}  // namespace evald::endpoint
