#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "orchestrator/fleet_machine/run_view.h"

namespace evald {

/// The states of a worker slot. docs/scheduling.md says what leads from one to another.
enum class WorkerState {
  kAbsent,     ///< its host is not there yet, has left, or has the device no more
  kIdle,       ///< no process, since no run needs one
  kStarting,   ///< started, has not said hello
  kWaiting,    ///< started, and says that another process holds its GPU
  kEmpty,      ///< has an engine, and was given no checkpoint
  kFollowing,  ///< pulls a checkpoint while it is staged
  kLoading,    ///< was sent a Load and has not answered
  kReady,      ///< has loaded a checkpoint: trials can be leased to it
  kStopping,   ///< was told to leave, since another process comes next
  kPausing,    ///< ended, and is started again after a pause
  kGivenUp,    ///< ended, and its restarts are used up
  kSetAside,   ///< its device failed again and again: nothing is started
};

enum class WorkerEvent {
  kHosted,    ///< its host is there and has the device
  kStart,     ///< a process is started, or adopted
  kWait,      ///< hello, but another process holds its GPU
  kHello,     ///< hello, with an engine
  kFollow,    ///< it is told to follow a staging
  kLoad,      ///< a Load is sent
  kLoaded,    ///< and answered
  kRefuse,    ///< it holds no checkpoint any more, or cannot load the one that it was sent
  kStop,      ///< Stop is sent
  kEnd,       ///< the process ended; what comes next follows:
  kPause,     ///<   it is started again, after a pause
  kGiveUp,    ///<   it has been started too often
  kSetAside,  ///<   its device is set aside
  kRetire,    ///< its host has left, or has the device no more
};

const char* Name(WorkerState state);
const char* Name(WorkerEvent event);
/// The state after `event`; nothing where the event says nothing in this state.
std::optional<WorkerState> Next(WorkerState state, WorkerEvent event);

/// A device of a host and the worker on it. A plain value.
class WorkerSlot {
 public:
  WorkerState state() const { return state_; }
  /// False, and no change, where the event says nothing in this state. The slot forgets all that
  /// the new state does not have: wants outside kReady, the engine and what it loads outside of
  /// kLoading and kReady, …
  bool Apply(WorkerEvent event);

  bool has_process() const {
    return state_ >= WorkerState::kStarting && state_ <= WorkerState::kStopping;
  }
  /// A process runs or will be started without anybody's asking.
  bool kept_running() const { return has_process() || state_ == WorkerState::kPausing; }
  bool has_engine() const { return state_ >= WorkerState::kEmpty && state_ <= WorkerState::kReady; }
  /// A checkpoint is on its way to it, by Load or while it is staged.
  bool pulls() const {
    return state_ == WorkerState::kLoading || state_ == WorkerState::kFollowing;
  }

  std::string id;
  std::string host;
  std::string device;  ///< "": its host has it no more
  bool gpu = false;    ///< the device is one

  // of the process
  std::string profile;  ///< what it was started with last
  int64_t run = 0;      ///< that it worked for last, or was started for; 0: none
  bool on_gpu =
      false;  ///< its program computes on the GPU; with other programs the device is only a name
  std::string waits;     ///< who holds its GPU (kWaiting)
  bool follows = false;  ///< its engine can follow a staging
  std::optional<std::pair<int64_t, int64_t>>
      following;                       ///< the run and the time that it was last told to follow
  std::optional<std::string> loading;  ///< fingerprint of the last Load that was not refused
  std::optional<EngineFacts> engine;   ///< that answered this Load
  int64_t load_sent_us = 0;            ///< 0: not by this life of the orchestrator
  int64_t load_moved_us =
      0;  ///< when the Load was sent, or the worker last said that more bytes are there
  int64_t pulled = 0,
          to_pull = 0;  ///< bytes of what it loads or follows; 0 of 0 while it does not tell
  int wants = 0;        ///< trials that it asked for
  std::set<HeldTrial> held;
  std::string cause;     ///< why the process is about to end; "" while nobody knows of anything
  bool excused = false;  ///< it said why it ends, and that its device is not at fault
  bool refuses = false;  ///< it can make no engine of what it was started with

  // of the slot
  int restarts = 0;  ///< of this profile without progress between
  std::set<std::string>
      spent;      ///< profiles whose restarts are used up: it is not started with them again
  struct Start {  ///< what comes after kStopping
    std::string profile;
    int64_t run = 0;
    bool on_gpu = false;
  };
  std::optional<Start> next;
  int64_t due_us = 0;  ///< when the state ends by itself; 0: never
  /// A question about the worker is with this run; 0: none is.
  int64_t asked = 0;
  bool asked_relief = false;

 private:
  void Forget();
  WorkerState state_ = WorkerState::kAbsent;
};

/// The same for a metric process, which knows less: it is there or not.
enum class ScorerState { kAbsent, kIdle, kStarting, kReady, kPausing, kGivenUp };
const char* Name(ScorerState state);

struct ScorerSlot {
  std::string id;
  std::string host;
  ScorerState state = ScorerState::kAbsent;
  int wants = 0;
  std::string cause;
  int restarts = 0;
  int64_t due_us = 0;
  int64_t asked = 0;  ///< a question is with this run
  bool asked_own = false;

  bool has_process() const {
    return state == ScorerState::kStarting || state == ScorerState::kReady;
  }
};

}  // namespace evald
