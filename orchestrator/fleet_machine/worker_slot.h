#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "orchestrator/fleet_machine/held_trials.h"
#include "orchestrator/fleet_machine/run_view.h"

namespace evald {

/// Time in which a process says hello, from its start or from its last message that it waits.
inline constexpr int64_t kHelloMicros = 60'000'000;

/// The states of a worker slot. docs/scheduling.md lists the transitions.
enum class WorkerState {
  kAbsent,     ///< its host is not there yet, has left, or no longer has the device
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
  kRefuse,    ///< it no longer holds a checkpoint, or cannot load the one that it was sent
  kStop,      ///< Stop is sent
  kEnd,       ///< the process ended; one of these follows:
  kPause,     ///<   it is started again, after a pause
  kGiveUp,    ///<   it has been started too often
  kSetAside,  ///<   its device is set aside
  kRetire,    ///< its host has left, or no longer has the device
};

const char* Name(WorkerState state);
const char* Name(WorkerEvent event);
/// The state after `event`; nothing if the event has no meaning in this state.
std::optional<WorkerState> Next(WorkerState state, WorkerEvent event);

/// A device of a host and the worker on it. A plain value.
class WorkerSlot {
 public:
  WorkerState state() const { return state_; }
  /// False, and no change, if the event has no meaning in this state. Clears all fields that the
  /// new state does not have: wants outside kReady, the engine and the load outside kLoading and
  /// kReady, …
  bool Apply(WorkerEvent event);

  bool has_process() const {
    return state_ >= WorkerState::kStarting && state_ <= WorkerState::kStopping;
  }
  /// Whether a process runs, or will be started without a request.
  bool kept_running() const { return has_process() || state_ == WorkerState::kPausing; }
  bool has_engine() const { return state_ >= WorkerState::kEmpty && state_ <= WorkerState::kReady; }
  /// Whether it could be given work and asks for none.
  bool quiet() const {
    return state_ == WorkerState::kReady && held.empty() && wants == 0 && asked == 0;
  }
  /// Whether a checkpoint is on its way to the worker, by Load or by following a staging.
  bool pulls() const {
    return state_ == WorkerState::kLoading || state_ == WorkerState::kFollowing;
  }

  std::string id;
  std::string host;
  std::string device;  ///< "": its host no longer has it
  bool gpu = false;    ///< the device is a GPU

  // of the process
  std::string profile;  ///< the command line of its last start
  int64_t run = 0;      ///< the run that it last worked for or was started for; 0: none
  /// Its program computes on the GPU; for other programs the device is only a name
  bool on_gpu = false;
  std::string waits;     ///< the process that holds its GPU (kWaiting)
  bool follows = false;  ///< its engine can follow a staging
  /// The run and the staging that it was last told to follow
  std::optional<std::pair<int64_t, int64_t>> following;
  std::optional<std::string> loading;  ///< fingerprint of the last Load that was not refused
  std::optional<EngineFacts> engine;   ///< the engine that answered this Load
  int64_t load_sent_us = 0;            ///< 0: an earlier orchestrator process sent it
  int64_t load_moved_us = 0;           ///< when the Load was sent, or more bytes were last reported
  /// When its engine first came back after the Load was sent, without a trial; 0: it has not. An
  /// engine that loads does not come back before the answer.
  int64_t load_missed_us = 0;
  /// Bytes of the checkpoint on its way; 0 of 0 until it tells
  int64_t pulled = 0, to_pull = 0;
  std::string cause;     ///< why the process is about to end; "": no reason is known
  bool excused = false;  ///< it gave the reason for its end, and the device is not at fault
  bool refuses = false;  ///< it can make no engine from its command line

  // of the slot
  int restarts = 0;  ///< with this profile and without progress between
  /// Profiles with used-up restarts: it is not started with them again
  std::set<std::string> spent;
  /// When it first said that it waits for its GPU, without an engine since; 0: it has not
  int64_t claimed_us = 0;
  /// It has said so for so long that runs no longer wait for its GPU
  bool doubtful = false;
  struct Start {  ///< the next process after kStopping
    std::string profile;
    int64_t run = 0;
    bool on_gpu = false;
  };
  std::optional<Start> next;

  // of its trials: changed by most events, so they lie together and beside the state
  int64_t due_us = 0;    ///< when the state ends by itself; 0: never
  int64_t quiet_us = 0;  ///< since when it is known to be quiet; 0: it is not
  HeldTrials held;
  /// When it got a trial while it held none, ended one, or last showed that its trials go on
  int64_t moved_us = 0;
  int64_t held_looked_us = 0;  ///< when its run last looked for stalled trials of it
  /// The run that is being asked about this worker; 0: none.
  int64_t asked = 0;
  bool asked_to_steal = false;
  int wants = 0;           ///< trials that it asked for
  int64_t started_us = 0;  ///< when its process was started; 0: before this orchestrator process
  /// When a run with work last had no trial that fits the time that its host has left; 0: never
  int64_t no_time_us = 0;

 private:
  void Forget();
  WorkerState state_ = WorkerState::kAbsent;
};

/// The same for a metric process, which has fewer states.
enum class MetricProcessState { kAbsent, kIdle, kStarting, kReady, kPausing, kGivenUp };
const char* Name(MetricProcessState state);

struct MetricProcessSlot {
  std::string id;
  std::string host;
  MetricProcessState state = MetricProcessState::kAbsent;
  int wants = 0;
  std::string cause;
  int restarts = 0;
  int64_t due_us = 0;
  int64_t asked = 0;  ///< the run that is being asked; 0: none
  bool asked_own = false;
  int64_t job_of = 0;  ///< the run whose job it does; 0: none; kJobOfNobody: of a run that is over
  int64_t job_us = 0;  ///< when it got the job, or its run ended
  bool excused = false;  ///< it is killed without a fault of its own
  static constexpr int64_t kJobOfNobody = -1;

  bool has_process() const {
    return state == MetricProcessState::kStarting || state == MetricProcessState::kReady;
  }
};

}  // namespace evald
