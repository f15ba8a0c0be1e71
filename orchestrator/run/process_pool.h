#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "orchestrator/fleet/agent.h"
#include "orchestrator/fleet/loop.h"

namespace evald {

/// A set of like processes (workers, or metric processes) that are kept running: one that ends is
/// started again after a growing pause, a bounded number of times. Loop thread only.
class ProcessPool {
 public:
  /// `loop` and `agent` outlive the pool.
  ProcessPool(Loop* loop, Agent* agent, std::vector<ProcessSpec> specs, int restarts_max);

  void StartAll();
  bool Owns(const std::string& id) const { return members_.count(id) > 0; }

  void Connected(const std::string& id) { members_.at(id).connected = true; }
  void SetReady(const std::string& id) { members_.at(id).ready = true; }
  bool connected(const std::string& id) const { return members_.at(id).connected; }
  bool ready(const std::string& id) const { return members_.at(id).ready; }

  /// The process asked for `count` more things to do.
  void AddWants(const std::string& id, int count) { members_.at(id).wants += count; }
  /// Takes one of its wants; false when it has none.
  bool TakeWant(const std::string& id);
  void ReturnWant(const std::string& id) { ++members_.at(id).wants; }

  /// Why the process is about to be ended; goes before how it ended.
  void NoteCause(const std::string& id, const std::string& cause) { members_.at(id).cause = cause; }
  /// The process ended. Starts it again later, unless the pool is closing or its restarts are used up.
  void Exited(const std::string& id, const std::string& how);
  /// Nothing is started any more.
  void Close() { closing_ = true; }

  /// None runs and none will be started.
  bool exhausted() const;
  /// How the last one ended, for the error when exhausted.
  const std::string& last_exit() const { return last_exit_; }
  std::vector<std::string> ids() const;
  size_t running() const;

 private:
  struct Member {
    ProcessSpec spec;
    bool running = false;
    bool connected = false;
    bool ready = false;
    bool restarting = false;
    int wants = 0;
    int restarts = 0;
    std::string cause;
  };
  void Start(Member* member);

  Loop* loop_;
  Agent* agent_;
  int restarts_max_;
  bool closing_ = false;
  std::string last_exit_;
  std::map<std::string, Member> members_;
};

}  // namespace evald
