#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/fleet/host.h"
#include "orchestrator/fleet/loop.h"

namespace evald {

/// Slots for like processes (a device's worker, a metric process each). What is assigned to a slot
/// is kept running: when it ends it is started again after a growing pause, a bounded number of
/// times without progress between. Loop thread only.
class ProcessPool {
 public:
  /// `loop` and `host` outlive the pool.
  ProcessPool(Loop* loop, Host* host, int restarts_max);

  /// One more slot, unless it is there.
  void AddSlot(const std::string& id);
  /// A process that runs in its slot already, started by somebody before us.
  void Adopt(ProcessSpec spec, bool connected);

  /// Runs `spec` in its slot (spec.id). What runs there is stopped first, unless it bears the same
  /// `tag`: then nothing happens. Forgets earlier failures.
  void Assign(ProcessSpec spec, const std::string& tag);
  /// Ends what runs in the slot, in order, and starts the same again at once. Counts as no failure.
  void Renew(const std::string& id);
  const std::string& tag(const std::string& id) const { return members_.at(id).tag; }
  bool Owns(const std::string& id) const { return members_.count(id) > 0; }

  void Connected(const std::string& id);
  /// It is alive, but cannot be connected yet: it is late only from `now` on.
  void StillStarting(const std::string& id, int64_t now) { members_.at(id).started_us = now; }
  void SetReady(const std::string& id, bool ready);
  bool running(const std::string& id) const { return members_.at(id).running; }
  bool connected(const std::string& id) const { return members_.at(id).connected; }
  bool ready(const std::string& id) const { return members_.at(id).ready; }
  bool stopping(const std::string& id) const { return members_.at(id).next.has_value(); }
  /// Nothing runs in the slot and nothing will, until something is assigned.
  bool given_up(const std::string& id) const;
  /// Nothing runs in the slot because its restarts are used up.
  bool used_up(const std::string& id) const { return given_up(id) && restarts(id) >= restarts_max_; }
  int restarts(const std::string& id) const { return members_.at(id).restarts; }
  /// Processes that were started at least `micros` before `now` and have not said hello.
  std::vector<std::string> NotConnectedFor(int64_t micros, int64_t now) const;

  /// The process asked for `count` more things to do.
  void AddWants(const std::string& id, int count) { members_.at(id).wants += count; }
  void ClearWants(const std::string& id) { members_.at(id).wants = 0; }
  bool HasWant(const std::string& id) const;
  /// Takes one of its wants; false when it has none, or is not ready.
  bool TakeWant(const std::string& id);

  /// It got something done: failures before do not count any more.
  void Progressed(const std::string& id) { members_.at(id).restarts = 0; }
  /// Why the process is about to be ended; goes before how it ended.
  void NoteCause(const std::string& id, const std::string& cause) { members_.at(id).cause = cause; }
  const std::string& cause(const std::string& id) const { return members_.at(id).cause; }
  /// The process ended. Starts what comes next in the slot: what was assigned meanwhile, or the same
  /// again later, unless the pool is closing or its restarts are used up.
  void Exited(const std::string& id, const std::string& how);
  /// The process ended, and nothing is started in the slot until something is assigned.
  void GaveUp(const std::string& id, const std::string& why);
  /// The slot's host has left: what ran in it is forgotten, and nothing is started until something is assigned or
  /// adopted. No slot that is given up.
  void Retire(const std::string& id);
  /// Nothing is started any more.
  void Close() { closing_ = true; }

  /// The slot's host has left (Retire).
  bool retired(const std::string& id) const { return members_.at(id).retired; }
  /// Every slot whose host has not left is given up, or `useless`, and there is one that is given up and of use.
  bool exhausted(const std::function<bool(const std::string& id)>& useless = {}) const;
  /// How the last one ended, for the error when exhausted.
  const std::string& last_exit() const { return last_exit_; }
  const std::vector<std::string>& ids() const { return ids_; }

 private:
  struct Assignment {
    ProcessSpec spec;
    std::string tag;
  };
  struct Member {
    std::optional<ProcessSpec> spec;
    std::string tag;
    std::optional<Assignment> next;  ///< waits for the one before to end
    bool running = false;
    bool connected = false;
    bool ready = false;
    bool restarting = false;
    bool retired = false;
    int wants = 0;
    int restarts = 0;
    uint64_t starts = 0;
    int64_t started_us = 0;
    std::string cause;
  };
  void Start(const std::string& id);
  void NoteEnd(const std::string& id, const std::string& how);
  void StopFor(const std::string& id, Assignment next);
  void StartOrFail(const std::string& id);

  Loop* loop_;
  Host* host_;
  int restarts_max_;
  bool closing_ = false;
  std::string last_exit_;
  std::vector<std::string> ids_;
  std::map<std::string, Member> members_;
};

}  // namespace evald
