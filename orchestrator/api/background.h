#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace evald::api {

/// A few threads for work that may wait for a disk, so that the server's thread need not.
class Background {
 public:
  Background(int threads, size_t waiting_max);
  /// Drops waiting work. Waits for running work.
  ~Background();

  /// False if `waiting_max` works wait. `work` must not throw. Any thread.
  bool Run(std::function<void()> work);

 private:
  void Loop();

  size_t waiting_max_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<std::function<void()>> waiting_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace evald::api
