#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "orchestrator/devices/device_book.h"
#include "orchestrator/fleet_machine/events.h"
#include "orchestrator/fleet_machine/orders.h"
#include "orchestrator/fleet_machine/run_view.h"
#include "orchestrator/fleet_machine/worker_slot.h"
#include "orchestrator/schedule/dispatch.h"
#include "orchestrator/schedule/scoring_turns.h"

namespace evald {

/// The hosts, their workers and metric processes, and the runs that they work for: which process is
/// started, stopped or killed, which checkpoint a worker loads, and which run a worker or metric
/// process that asks is served from. A plain value: events and the time (microseconds of any one
/// clock) go in, orders come out. No clock, no I/O.
///
/// The RunMachine of a run knows its trials, and who holds which. For a worker that asks, this
/// machine orders LeaseTrial; the executor asks the run and passes its answer on. So the traffic
/// goes one way:
///
///     process ──Heard──► FleetMachine ──LeaseTrial──► executor ──► RunMachine
///                             ▲                          │
///                             └──────── Answered ────────┘
///
/// The executor, after each event, takes the orders and carries them out until there are none left,
/// before it passes on the next event from outside. A message of a process that is about a run goes
/// to the run first; then the machine hears that the run has changed, and then of the message. An
/// event that says nothing in the state its process is in changes nothing, and comes out as
/// order::Ignored. Answers to questions that were not asked are a fault of the executor: they throw
/// Error(kInternal).
///
/// Cost: an event of a process takes log n steps for n processes, and at most a few for each run.
/// Events of hosts, ends of processes, and a run that newly wants something look at all processes
/// that are free for it. A run's DevicesBeside looks at all workers, once for each event after
/// which a worker of a host without the run's checkpoint is free. Tick looks at all workers for
/// each run that waits for a device, for others at few.
class FleetMachine {
 public:
  struct Options {
    int worker_restarts_max = 6;  ///< of one worker with one profile, without progress between
    int metric_restarts_max = 6;
    double load_stall_s = 1800;  ///< a worker whose load has not come on for so long is killed
    double needless_load_s =
        5;  ///< one whose load no run needs any more is started anew after so long
    DeviceLimits device_limits;  ///< when a GPU is set aside
  };
  explicit FleetMachine(Options options);

  // ---- hosts
  /// A host, or what it is from now on. It is away until HostReady.
  void HostAdded(const HostSpec& spec, int64_t now);
  /// The host is there, with these processes and no other; none of them holds a trial. In its
  /// memory are the checkpoints of these fingerprints.
  void HostReady(const std::string& host, const std::vector<AdoptedProcess>& processes,
                 const std::vector<std::string>& staged, int64_t now);
  void HostIs(const std::string& host, HostNews news, int64_t now);
  /// The host, which is not there, and its processes are known no more; their slots are for other
  /// hosts. False, and no change, while a worker of it holds a trial.
  bool HostForgotten(const std::string& host, int64_t now);

  // ---- runs
  /// The run is new, or something of it has changed: also where the view is as before, and only its
  /// trials are not.
  void RunChanged(const RunView& view, int64_t now);
  /// The run is over: what workers hold of it is revoked. With `leaves_staged`, its staged
  /// checkpoint has not been dropped: DropStaged comes once nobody uses it.
  void RunRemoved(int64_t run, bool leaves_staged, int64_t now);
  /// The answer to a question that was ordered, or a trial that is withdrawn.
  void Answered(const RunAnswer& answer, int64_t now);

  // ---- processes
  void Heard(const std::string& id, const ProcessNews& news, int64_t now);
  /// The process has ended, and all it ever said was passed on before.
  void Ended(const std::string& id, const ProcessEnd& end, int64_t now);
  /// The process has been silent for too long, or makes no sense: it is killed; where its host is
  /// away, only what it holds goes to others.
  void Hung(const std::string& id, const std::string& why, int64_t now);

  // ---- time and room
  /// Several times a second, and at next_at().
  void Tick(int64_t now);
  /// When the state of a process next ends by itself: a pause, or patience with one that does not
  /// answer.
  std::optional<int64_t> next_at() const;
  /// Has workers of the staging host leave and start anew that have nothing to do and hold a
  /// checkpoint that no run needs, for the room it takes. False where there are none, and none is
  /// on its way out.
  bool FreeStaged(int64_t now);
  /// Nothing is started or given out any more.
  void StopAll();

  std::vector<Order> TakeOrders() { return std::exchange(orders_, {}); }

  // ---- looking
  /// In the order in which their hosts came; those of hosts that were forgotten have no id and no
  /// device.
  const std::vector<WorkerSlot>& workers() const { return workers_; }
  const std::vector<ScorerSlot>& scorers() const { return scorers_; }
  const WorkerSlot* FindWorker(const std::string& id) const;
  struct Host {
    HostSpec spec;
    bool here = false;
    bool leaving = false;
    bool left = false;
    std::set<std::string> staged;  ///< fingerprints of what is in its memory, as far as is known
    double stage_bytes_per_s =
        1e9;  ///< at which a checkpoint gets there; a guess until the first did
  };
  const std::map<std::string, Host>& hosts() const { return hosts_; }
  /// Devices of all hosts that are there, but for those that are set aside.
  int device_count() const;
  /// Why the worker's device is set aside; nothing where it is not.
  std::optional<std::string> set_aside(const WorkerSlot& slot) const;

 private:
  struct Place {  // of a process
    bool scorer = false;
    size_t index = 0;
  };
  struct Run {
    RunView view;
    bool ended = false;          ///< it was told that it ends
    int64_t waits_since_us = 0;  ///< no worker that is there can do what it needs; 0: one can
    std::string waiting;         ///< as the run was told
    std::map<size_t, int>
        ended_loads;  ///< by worker: how often it ended over a load, while none had succeeded
    int ended_loads_all = 0;
    std::string load_ended;        ///< how the last one did
    std::set<size_t> nothing_for;  ///< workers that it had nothing for, until it changes
    std::set<size_t> no_job_for;   ///< metric processes, likewise
    uint64_t beside_revision = 0;  ///< of the facts that `beside` was counted from
    int beside = 0;
  };

  // fleet_machine.cc: runs, answers, time
  Run* Find(int64_t run);
  void ForgetRun(int64_t run);
  void TakeOver(Run* run, const RunView& view, bool fresh);
  void EndRun(Run* run);
  void CountFingerprint(const std::string& fingerprint, int by);
  void OnLeased(const answer::Leased& leased);
  void OnNothing(const answer::NothingToLease& nothing);
  void OnJobLeased(const answer::JobLeased& leased, int64_t now);
  void OnWithdrawn(const answer::Withdrawn& withdrawn);
  void OnDue(Place place, int64_t now);
  Place PlaceOf(const std::string& id) const;
  void Push(Order order) { orders_.push_back(std::move(order)); }
  void Ignore(const std::string& id, const char* event, const char* state);

  // fleet_machine_hosts.cc
  WorkerSlot& SlotFor(const HostSpec& spec, size_t number);
  ScorerSlot& ScorerFor(const HostSpec& spec, size_t number);
  void Adopt(size_t index, const AdoptedProcess& process, int64_t now);
  void AdoptScorer(size_t index, const AdoptedProcess& process, int64_t now);
  void Missing(Host* host, const std::set<std::string>& there, int64_t now);
  void Retire(const std::string& host, int64_t now);
  void Resume(const std::string& host, int64_t now);
  void Recount();
  bool Serves(const std::string& host) const;
  bool Usable(const WorkerSlot& slot) const;

  // fleet_machine_processes.cc
  bool Move(size_t index, WorkerEvent event);
  void Update(size_t index);
  void SetDue(size_t index, int64_t at);
  void UpdateScorer(size_t index);
  void MoveScorer(size_t index, ScorerState state, int64_t due = 0);
  void OnWorkerNews(size_t index, const ProcessNews& news, int64_t now);
  void OnScorerNews(size_t index, const ProcessNews& news, int64_t now);
  void OnHello(size_t index, const news::Hello& hello);
  void OnWaits(size_t index, const news::Waits& waits, int64_t now);
  void OnTrialOver(size_t index, const news::TrialOver& over);
  void OnFailed(size_t index, const news::Failed& failed);
  void OnIdle(size_t index);
  void KillHung(const std::string& id, const std::string& why);
  void Abandon(size_t index);

  // fleet_machine_ends.cc
  struct Blame {
    Run* run = nullptr;     ///< whose load or start it was over, which none had managed before
    bool at_fault = false;  ///< the device may be the cause
    std::string cause;
  };
  Blame BlameFor(const WorkerSlot& slot, const ProcessEnd& end, bool unasked);
  void WorkerEnded(size_t index, const ProcessEnd& end, bool by_itself, int64_t now);
  void WhatComesNext(size_t index, std::optional<WorkerSlot::Start> next, bool again, int64_t now);
  void ScorerEnded(size_t index, const ProcessEnd& end, int64_t now);
  void Refuse(WorkerSlot* slot, const std::string& why, bool see_logs);
  Run* StartedFor(const WorkerSlot& slot);
  bool MayStartAgain(const WorkerSlot& slot);
  bool Exhausted(const Run& run) const;
  bool ScorersExhausted() const;
  void TellExhausted();
  bool TriedInVain(const WorkerSlot& slot, const Run& run) const;
  bool MayYetLoad(const Run& run) const;
  void TellVain();
  void Distrust(Run* run, const WorkerSlot& slot);
  void TellNobodyElse();

  // fleet_machine_serving.cc
  void WakeWorkers();
  void WakeScorers();
  void Serve(int64_t now);
  void ServeWorker(size_t index, int64_t now);
  void ServeScorer(size_t index, int64_t now);
  void AskRelief(size_t index, int64_t after);
  Run* Choose(size_t index);
  bool Suits(const WorkerSlot& slot, const Run& run) const;
  bool Spent(const WorkerSlot& slot, const Run& run) const {
    return slot.spent.count(run.view.profile) > 0;
  }
  bool HasGpuFor(const Run& run) const;
  bool HostHas(const std::string& host, const Run& run) const;
  bool WorthLoading(const WorkerSlot& slot, Run* run);
  int DevicesBeside(Run* run);
  void StartAs(size_t index, const WorkerSlot::Start& start, int64_t now);
  WorkerSlot::Start StartFor(const WorkerSlot& slot, const Run& run) const;
  void StartMissing(const std::string& host, int64_t now);
  void StopFor(size_t index, WorkerSlot::Start next, const std::string& why, int64_t now);

  // fleet_machine_loads.cc
  void SendLoad(size_t index, const Run& run, int64_t now);
  void FollowStaging(size_t index);
  void OnLoaded(size_t index, const news::Loaded& loaded, int64_t now);
  void OnPulled(size_t index, const news::Pulled& pulled, int64_t now);
  void NoteStaged(const WorkerSlot& slot, const std::string& fingerprint, int64_t now);
  bool Needed(const WorkerSlot& slot) const;
  void WatchLoad(size_t index);
  void WatchLoads();
  void OnLoadDue(size_t index, int64_t now);
  void Renew(size_t index, const std::string& why, int64_t now);
  void ReleaseStaged();

  // fleet_machine_waiting.cc
  bool IsServed(const Run& run) const;
  std::string WaitsFor(const Run& run) const;
  std::string WhyNot(const WorkerSlot& slot) const;
  void TellWaiting(int64_t now);

  Options options_;
  std::map<std::string, Host> hosts_;
  std::vector<WorkerSlot> workers_;
  std::vector<ScorerSlot> scorers_;
  std::vector<size_t> unused_workers_, unused_scorers_;  // of hosts that were forgotten
  std::unordered_map<std::string, Place> places_;
  std::map<int64_t, Run> runs_;
  std::set<int64_t> wanting_;                // runs that want workers
  std::map<std::string, int> fingerprints_;  // of runs: how many have it
  std::set<std::string> kept_;               // staged checkpoints of runs that are over
  DeviceBook devices_;
  DeviceUse use_;
  int64_t use_decayed_us_ = 0;
  ScoringTurns scoring_;
  int usable_gpus_ = 0;
  int devices_told_ = 0;
  std::set<std::tuple<int64_t, bool, size_t>> due_;  // when, whether a metric process, which
  std::set<size_t> free_, free_scorers_;             // may be given something
  std::set<size_t> ready_, ready_scorers_;           // of these, those that are to be served now
  std::set<size_t> declined_;  // a run was not worth loading there when it was served last
  std::string last_worker_end_, last_scorer_end_;
  uint64_t revision_ = 1;  // of all facts
  bool closed_ = false;
  std::vector<Order> orders_;
};

}  // namespace evald
