#include "orchestrator/fleet_machine/worker_slot.h"

#include <array>
#include <initializer_list>

namespace evald {
namespace {

using S = WorkerState;
using E = WorkerEvent;

constexpr std::array<const char*, 12> kStates = {"absent",   "idle",      "starting", "waiting",
                                                 "empty",    "following", "loading",  "ready",
                                                 "stopping", "pausing",   "given up", "set aside"};
constexpr std::array<const char*, 14> kEvents = {
    "hosted", "start", "wait", "hello", "follow",  "load",      "loaded",
    "refuse", "stop",  "end",  "pause", "give up", "set aside", "retire"};

constexpr unsigned In(std::initializer_list<S> states) {
  unsigned set = 0;
  for (const S state : states) set |= 1u << static_cast<unsigned>(state);
  return set;
}

struct Row {
  E event;
  unsigned from;
  S to;
};

constexpr unsigned kEngines = In({S::kEmpty, S::kFollowing, S::kLoading, S::kReady});
constexpr unsigned kProcesses = kEngines | In({S::kStarting, S::kWaiting, S::kStopping});

// All transitions.
constexpr Row kTable[] = {
    // event        in these states                                              leads to
    {E::kHosted, In({S::kAbsent, S::kSetAside}), S::kIdle},
    {E::kStart, In({S::kIdle, S::kPausing, S::kGivenUp}), S::kStarting},
    {E::kWait, In({S::kStarting, S::kWaiting}), S::kWaiting},
    {E::kHello, In({S::kStarting, S::kWaiting}), S::kEmpty},
    {E::kFollow, In({S::kEmpty, S::kFollowing, S::kReady}), S::kFollowing},
    {E::kLoad, In({S::kEmpty, S::kFollowing, S::kReady}), S::kLoading},
    {E::kLoaded, In({S::kLoading}), S::kReady},
    {E::kRefuse, kEngines, S::kEmpty},
    {E::kStop, kEngines, S::kStopping},
    {E::kEnd, kProcesses, S::kIdle},
    {E::kPause, In({S::kIdle}), S::kPausing},
    {E::kGiveUp, In({S::kIdle}), S::kGivenUp},
    {E::kSetAside, In({S::kIdle}), S::kSetAside},
    {E::kRetire, ~0u, S::kAbsent},
};

}  // namespace

const char* Name(WorkerState state) { return kStates[static_cast<size_t>(state)]; }
const char* Name(WorkerEvent event) { return kEvents[static_cast<size_t>(event)]; }

const char* Name(MetricProcessState state) {
  constexpr std::array<const char*, 6> kNames = {"absent", "idle",    "starting",
                                                 "ready",  "pausing", "given up"};
  return kNames[static_cast<size_t>(state)];
}

std::optional<WorkerState> Next(WorkerState state, WorkerEvent event) {
  for (const Row& row : kTable) {
    if (row.event == event && (row.from & In({state})) != 0) return row.to;
  }
  return std::nullopt;
}

bool WorkerSlot::Apply(WorkerEvent event) {
  const auto to = Next(state_, event);
  if (!to) return false;
  state_ = *to;
  due_us = 0;
  if (event == E::kLoad) loading.reset();  // the caller sets it to the new fingerprint
  if (event == E::kLoad || event == E::kFollow) pulled = to_pull = 0;
  Forget();
  return true;
}

// Clears the fields that the slot's state does not have.
void WorkerSlot::Forget() {
  if (state_ != S::kReady) wants = 0;
  if (state_ != S::kReady && state_ != S::kStopping) engine.reset();
  if (state_ != S::kReady && state_ != S::kLoading && state_ != S::kStopping) loading.reset();
  if (!pulls()) pulled = to_pull = 0;
  if (state_ != S::kWaiting) waits.clear();
  if (state_ != S::kStopping) next.reset();
  if (has_process()) return;
  following.reset();
  follows = false;
  load_sent_us = load_moved_us = load_missed_us = started_us = no_time_us = 0;
  held.clear();
  cause.clear();
  excused = refuses = false;
  asked = 0;
}

}  // namespace evald
