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
#include "orchestrator/fleet_machine/index_set.h"
#include "orchestrator/fleet_machine/orders.h"
#include "orchestrator/fleet_machine/run_view.h"
#include "orchestrator/fleet_machine/worker_slot.h"
#include "orchestrator/schedule/dispatch.h"
#include "orchestrator/schedule/placement.h"
#include "orchestrator/schedule/scoring_turns.h"

namespace evald {

/// Decides which process is started, stopped or killed, which checkpoint a worker loads, and which
/// run serves a worker or metric process that asks. It knows the hosts, their workers and metric
/// processes, and the runs that they work for. A plain value: events and the time (microseconds of
/// any one clock) go in, orders come out. No clock, no I/O.
///
/// A run's RunMachine knows its trials and their holders. If a worker asks, this machine orders
/// LeaseTrial; the executor asks the run and passes its answer on. So the traffic goes one way:
///
///     process ──Heard──► FleetMachine ──LeaseTrial──► executor ──► RunMachine
///                             ▲                          │
///                             └──────── Answered ────────┘
///
/// After each event the executor takes the orders and carries them out until none are left; then it
/// passes on the next event from outside. If a process's message is about a run, the executor gives
/// it to the run first. The machine then gets RunChanged, and after that Heard. An event that has
/// no meaning in the state of its process changes nothing and comes out as order::Ignored. An
/// answer to a question that was not asked is a fault of the executor and throws Error(kInternal).
///
/// Runs are asked for trials one question at a time. So a trial that comes back to a run is offered
/// to one idle worker, not to each of them.
///
/// Cost: an event of a process takes log n steps for n processes, and at most a few for each run.
/// An event of a host, the end of a process, and a run that newly wants workers look at all
/// processes that are free for it. A run's DevicesBeside looks at all workers, once for each event
/// that leaves a worker free on a host without the run's checkpoint. Tick looks at all workers for
/// each run that waits for a device, and at few for other runs.
class FleetMachine {
 public:
  struct Options {
    int worker_restarts_max = 6;  ///< of one worker with one profile, with no progress between them
    int metric_restarts_max = 6;
    /// A worker whose load has made no progress for so long is killed
    double load_stall_s = 1800;
    /// The same while a load still pulls bytes whose number the worker has told
    double pull_stall_s = 300;
    /// A worker of the staging host (HostSpec::stages_here) has lost its Load, and is killed, if
    /// its engine goes on returning from calls for this long after the Load was sent
    double unheard_load_s = 60;
    /// A worker whose load no run needs any more is restarted after this
    double needless_load_s = 5;
    /// Hosts that have a checkpoint, or are getting it, pass it on to others: a copy to one more
    /// host takes no rate from the others. Otherwise CopyPace says how many are made at once
    bool hosts_pass_on = false;
    DeviceLimits device_limits;  ///< when a GPU is set aside
    /// Other hosts may come in place of those whose devices are set aside: no run ends for want of
    /// devices
    bool hosts_may_come = false;
    /// What the workers of a host with an end hold is handed back so long before the end: at most
    /// `end_margin_s`, and at most `end_margin_share` of the time that the host is there in all
    /// (but two seconds, or a quarter of that time if this is less)
    double end_margin_s = 150;
    double end_margin_share = 0.1;
    /// What is not handed back by then is taken back before this share of the margin is left
    double end_rest_share = 0.2;
  };
  explicit FleetMachine(Options options);

  // ---- hosts
  /// Adds a host, or replaces what is known of it. The host is away until HostReady.
  void HostAdded(const HostSpec& spec, int64_t now);
  /// The host is there, with exactly these processes, none of which holds a trial. `staged` are the
  /// fingerprints of the checkpoints in its memory.
  void HostReady(const std::string& host, const std::vector<AdoptedProcess>& processes,
                 const std::vector<std::string>& staged, int64_t now);
  void HostIs(const std::string& host, HostNews news, int64_t now);
  /// The host ends at `at_us`, with all its processes (0: no end is known). May be called again
  /// with a better value. HostAdded forgets the end.
  void HostEnds(const std::string& host, int64_t at_us, int64_t now);
  /// Forgets a host that is not there, and its processes. Other hosts may use their slots. False,
  /// and no change, if one of its workers holds a trial.
  bool HostForgotten(const std::string& host, int64_t now);

  // ---- runs
  /// The run is new or has changed. Call it also if the view is unchanged and only the run's trials
  /// have changed.
  void RunChanged(const RunView& view, int64_t now);
  /// The run is over: its leases are revoked. `leaves_staged`: the run's staged checkpoint still
  /// exists. The machine orders DropStaged once no worker uses it.
  void RunRemoved(int64_t run, bool leaves_staged, int64_t now);
  /// The run's answer to an order that asks it something, or the news that it has revoked a trial.
  void Answered(const RunAnswer& answer, int64_t now);

  // ---- processes
  void Heard(const std::string& id, const ProcessNews& news, int64_t now);
  /// The same for the worker in this place of workers().
  void Heard(size_t worker, const ProcessNews& news, int64_t now);
  /// The process has ended. All its messages were passed on before.
  void Ended(const std::string& id, const ProcessEnd& end, int64_t now);
  /// The process has been silent for too long, or sends nonsense. It is killed. If its host is
  /// away, only its trials or job go to others.
  void Hung(const std::string& id, const std::string& why, int64_t now);

  // ---- time and space
  /// Call it several times a second, and at next_at().
  void Tick(int64_t now);
  /// The next time at which a process's state ends by itself (a pause ends, or the machine gives up
  /// on a process that does not answer), or at which a host's work is handed or taken back.
  std::optional<int64_t> next_at() const;
  /// Restarts idle workers of the staging host that hold a checkpoint no run needs, to free its
  /// memory. True if memory will become free: such a worker is being restarted, or a worker of a
  /// host that is there still uses the staged checkpoint of a run that is over.
  bool FreeStaged(int64_t now);
  /// From now on no process is started and no trial or job given out.
  void StopAll();
  /// What is asked for and not there yet, for runs that wait for a device; "": nothing.
  /// `hosts_come`: other hosts are expected. A run waits for some of them before it ends because no
  /// host that is there can load its checkpoint.
  void Awaits(std::string nodes, bool hosts_come) {
    awaited_ = std::move(nodes);
    hosts_come_ = hosts_come;
    hosts_came_ = hosts_came_ || hosts_come;
  }
  struct Unused {
    std::string why;  ///< it cannot load the checkpoint of a run; "" if the runs only doubt it
    bool others_can = false;  ///< another host computes for such a run
  };
  /// Why no run that needs workers uses the host. Nothing if there is no such run, or one uses the
  /// host.
  std::optional<Unused> WhyUnused(const std::string& host) const;

  std::vector<Order> TakeOrders() { return std::exchange(orders_, {}); }

  // ---- looking
  /// Slots in the order in which their hosts came. Slots of forgotten hosts have no id and no
  /// device.
  const std::vector<WorkerSlot>& workers() const { return workers_; }
  const std::vector<MetricProcessSlot>& metric_processes() const { return metric_processes_; }
  const WorkerSlot* FindWorker(const std::string& id) const;
  struct Host {
    HostSpec spec;
    bool here = false;
    bool leaving = false;
    bool left = false;
    /// Fingerprints of the checkpoints in its memory, as far as known
    std::set<std::string> staged;
    /// Rate at which a checkpoint arrived there last; 0: none did
    double stage_bytes_per_s = 0;
    std::vector<size_t> workers, metric_processes;  ///< its slots, in ascending order
    int devices = 0;                                ///< those that count, as of the last Recount
    int offered_gpus = 0;                           ///< likewise
    int64_t added_us = 0;                           ///< when HostAdded was last called
    int64_t ends_us = 0;        ///< when the host ends; 0: no end is known, nor the next two
    int64_t hands_back_us = 0;  ///< when its workers hand back what they hold
    int64_t takes_back_us = 0;  ///< when the rest is taken back
    bool ending = false;        ///< hands_back_us is past
    bool taken_back = false;    ///< takes_back_us is past
    std::map<int64_t, std::string> unfit;  ///< why it cannot load the checkpoints of these runs
    /// It may be given work: it can be reached, is not leaving, and does not end soon.
    bool serves() const { return here && !leaving && !ending; }
  };
  const std::map<std::string, Host>& hosts() const { return hosts_; }
  /// Devices of all hosts that are there, without those that are set aside.
  int device_count() const { return device_count_; }
  /// Why the worker's device is set aside; nothing if it is not.
  std::optional<std::string> set_aside(const WorkerSlot& slot) const;

 private:
  struct Place {  // the place of a process
    bool metric_process = false;
    size_t index = 0;
  };
  struct Run {
    RunView view;
    bool ended = false;  ///< the run was told that it ends
    /// The time since which no worker there can do what the run needs; 0: one can
    int64_t waits_since_us = 0;
    std::string waiting;  ///< the reason that the run was told
    /// By worker: how often it ended while loading for the run, before any load had succeeded
    std::map<size_t, int> ended_loads;
    int unfit_hosts = 0;   ///< hosts, also of the past, that cannot load its checkpoint
    int64_t unfit_us = 0;  ///< when the last of them said so
    int ended_loads_all = 0;
    std::string load_ended;  ///< how the last of them ended
    /// Seconds of the last load by a worker whose host had the checkpoint; nothing before
    std::optional<double> load_s;
    /// Seconds of the last start of a worker with the run's profile; nothing before
    std::optional<double> start_s;
    /// Workers for which the run had no trial; cleared when the run changes
    std::set<size_t> nothing_for;
    std::set<size_t> no_job_for;  ///< metric processes without a job; cleared as above
    int64_t wants_since_us = 0;  ///< since when it has wanted a device and has none; 0: it does not
    int taken_back = 0;          ///< how often a device was taken from it for others
    uint64_t beside_revision = 0;  ///< the revision_ at which `beside` was counted
    int beside = 0;
  };

  // fleet_machine.cc: runs, answers, time
  Run* Find(int64_t run);
  void ForgetRun(int64_t run, int64_t now);
  void TakeOver(Run* run, const RunView& view, bool fresh);
  void EndRun(Run* run);
  void CountFingerprint(const std::string& fingerprint, int by);
  void OnLeased(const answer::Leased& leased, int64_t now);
  void OnNothing(const answer::NothingToLease& nothing, int64_t now);
  void OnJobLeased(const answer::JobLeased& leased, int64_t now);
  void OnRevoked(const answer::Revoked& revoked);
  void OnDue(Place place, int64_t now);
  Place PlaceOf(const std::string& id) const;
  void Push(Order order) { orders_.push_back(std::move(order)); }
  void Ignore(const std::string& id, const char* event, const char* state);

  // fleet_machine_hosts.cc
  WorkerSlot& SlotFor(const HostSpec& spec, size_t number);
  MetricProcessSlot& MetricProcessFor(const HostSpec& spec, size_t number);
  void Adopt(size_t index, const AdoptedProcess& process, int64_t now);
  void AdoptMetricProcess(size_t index, const AdoptedProcess& process, int64_t now);
  void Missing(Host* host, const std::set<std::string>& there, int64_t now);
  void Retire(const std::string& host, int64_t now);
  void Resume(const std::string& host, int64_t now);
  void Recount();
  void Recount(Host* host);
  void CountDevices(Host* host);
  void TellDevices();
  bool Serves(const std::string& host) const;
  bool Usable(const WorkerSlot& slot) const;
  bool OffersGpu(const WorkerSlot& slot) const;
  void DoubtClaims(int64_t now);

  // fleet_machine_processes.cc
  bool Move(size_t index, WorkerEvent event);
  void Update(size_t index);
  void SetDue(size_t index, int64_t at);
  void UpdateMetricProcess(size_t index);
  void MoveMetricProcess(size_t index, MetricProcessState state, int64_t due = 0);
  void OnWorkerNews(size_t index, const ProcessNews& news, int64_t now);
  void OnMetricProcessNews(size_t index, const ProcessNews& news, int64_t now);
  void OnHello(size_t index, const news::Hello& hello, int64_t now);
  void OnWaits(size_t index, const news::Waits& waits, int64_t now);
  void OnTrialOver(size_t index, const news::TrialOver& over);
  void OnFailed(size_t index, const news::Failed& failed, int64_t now);
  void OnIdle(size_t index, int64_t now);
  void KillHung(const std::string& id, const std::string& why);
  void Abandon(size_t index);

  // fleet_machine_ends.cc
  struct Blame {
    /// The run for which the process was starting or loading when it ended; null if another worker
    /// had managed that
    Run* run = nullptr;
    bool at_fault = false;  ///< the device may be the cause
    std::string cause;
  };
  Blame BlameFor(const WorkerSlot& slot, const ProcessEnd& end, bool unasked);
  void WorkerEnded(size_t index, const ProcessEnd& end, bool by_itself, int64_t now);
  void WhatComesNext(size_t index, std::optional<WorkerSlot::Start> next, bool again, int64_t now);
  void MetricProcessEnded(size_t index, const ProcessEnd& end, int64_t now);
  void Refuse(WorkerSlot* slot, const std::string& why, bool see_logs);
  Run* StartedFor(const WorkerSlot& slot);
  bool MayStartAgain(const WorkerSlot& slot);
  bool Exhausted(const Run& run) const;
  bool MetricProcessesExhausted() const;
  void TellExhausted();
  bool TriedInVain(const WorkerSlot& slot, const Run& run) const;
  bool MayYetLoad(const Run& run) const;
  void TellVain();
  void Distrust(Run* run, const WorkerSlot& slot);
  void TellNobodyElse(int64_t now);

  // fleet_machine_serving.cc
  void WakeWorkers();
  void WakeMetricProcesses();
  bool AnyWanted() const;
  void Serve(int64_t now);
  void ServeWorker(size_t index, int64_t now);
  void ServeMetricProcess(size_t index, int64_t now);
  void AskToSteal(size_t index, int64_t after);
  Run* Choose(size_t index, int64_t now);
  bool Suits(const WorkerSlot& slot, const Run& run) const;
  bool Spent(const WorkerSlot& slot, const Run& run) const {
    return slot.spent.count(run.view.profile) > 0;
  }
  bool HasGpuFor(const Run& run) const;
  bool HostHas(const std::string& host, const Run& run) const;
  bool WorthLoading(const WorkerSlot& slot, Run* run, int64_t now);
  int DevicesBeside(Run* run);
  double StageSeconds(const Host& host, double bytes) const;
  void LookForCopies(int64_t now);
  void StartAs(size_t index, const WorkerSlot::Start& start, int64_t now);
  WorkerSlot::Start StartFor(const WorkerSlot& slot, const Run& run) const;
  void StartMissing(const std::string& host, int64_t now);
  void StopFor(size_t index, WorkerSlot::Start next, const std::string& why, int64_t now);

  // fleet_machine_turns.cc
  /// Whether the run doubts the host, or all hosts of its token.
  bool Doubts(const RunView& run, const std::string& host) const;
  bool HasDevice(const Run& run) const;
  void TakeDevicesBack(int64_t now);
  void TakeDeviceFor(const Run& run, int64_t now);
  int64_t PatienceWith(const Run& holder) const;
  bool ComputedElsewhere(const Run& run, const std::string& host) const;
  void TakeStalledBack(int64_t now);
  void TakeJobsBack(int64_t now);
  bool OthersWantToScore(const std::string& user, const std::string& host) const;
  bool ScoredElsewhere(const Run& run, const std::string& host) const;

  // fleet_machine_loads.cc
  void SendLoad(size_t index, const Run& run, int64_t now);
  void FollowStaging(size_t index, int64_t now);
  void OnLoaded(size_t index, const news::Loaded& loaded, int64_t now);
  void OnPulled(size_t index, const news::Pulled& pulled, int64_t now);
  void WatchUnheardLoad(size_t index, const news::Idle& idle, int64_t now);
  void NoteStaged(const WorkerSlot& slot, const std::string& fingerprint, int64_t now);
  bool Needed(const WorkerSlot& slot) const;
  void WatchLoad(size_t index);
  void WatchLoads();
  void OnLoadDue(size_t index, int64_t now);
  void Renew(size_t index, const std::string& why, int64_t now);
  void ReleaseStaged();

  // fleet_machine_ends_of_hosts.cc
  /// Whether the worker may be given nothing, since its host ends too soon for the run.
  bool TooLate(const WorkerSlot& slot, const Run& run, int64_t now) const;
  bool OutOfTime(const WorkerSlot& slot, const Run& run, int64_t now) const;
  double LoadSeconds(const WorkerSlot& slot, const Run& run) const;
  int64_t UntilOf(const std::string& host) const { return hosts_.at(host).hands_back_us; }
  void WatchEnds(int64_t now);
  void HandBack(Host* host);
  void TakeAllBack(const Host& host);
  void TakeTrialsBack(const WorkerSlot& slot);
  void TakeAllJobsBack(const MetricProcessSlot& slot);
  bool Ending(const std::string& host) const;

  // fleet_machine_waiting.cc
  bool IsServed(const Run& run, int64_t now);
  std::string WaitsFor(const Run& run, int64_t now) const;
  std::string WaitsForTurn(const Run& run) const;
  std::string WhyNot(const WorkerSlot& slot, const Run& run, int64_t now) const;
  void TellWaiting(int64_t now);

  Options options_;
  std::map<std::string, Host> hosts_;
  std::vector<WorkerSlot> workers_;
  std::vector<const Host*> homes_;  // the host of each worker; may dangle for an absent worker
  std::vector<MetricProcessSlot> metric_processes_;
  std::vector<size_t> unused_workers_, unused_metric_processes_;  // slots of forgotten hosts
  std::unordered_map<std::string, Place> places_;
  std::map<int64_t, Run> runs_;
  std::set<int64_t> wanting_;                // runs that want workers
  std::map<std::string, int> fingerprints_;  // of runs, with the number of runs that have each
  std::set<std::string> kept_;               // staged checkpoints of runs that are over
  CopyPace pace_;
  // The checkpoint that each host is getting, as of copies_revision_; not for longer than it should
  std::map<std::string, std::string> copies_;
  uint64_t copies_revision_ = 0;
  int64_t copies_until_us_ = 0;  // then one of them will have taken longer
  DeviceBook devices_;
  DeviceUse use_;
  int64_t use_decayed_us_ = 0;
  int64_t turns_looked_us_ = 0;
  ScoringTurns scoring_;
  int device_count_ = 0;
  int offered_gpus_ = 0;
  std::set<size_t> claims_;  // workers of other hosts that wait for their GPU
  int devices_told_ = 0;
  std::set<std::tuple<int64_t, bool, size_t>> due_;  // time, whether a metric process, index
  IndexSet free_, free_metric_processes_;            // processes that may be given work
  IndexSet ready_, ready_metric_processes_;          // those of them that are to be served now
  size_t last_served_ = 0;                           // workers take turns
  size_t last_asked_ = 0;  // the worker for which a run was last asked for a trial
  // Workers for which a run was not worth loading when they were last served
  IndexSet declined_;
  std::string awaited_;
  bool hosts_come_ = false;
  bool hosts_came_ = false;  // ever: somebody brings hosts
  std::string last_worker_end_, last_metric_process_end_;
  uint64_t revision_ = 1;               // counts changes of all facts
  std::optional<int64_t> next_end_us_;  // as of the last WatchEnds
  bool closed_ = false;
  std::vector<Order> orders_;
};

}  // namespace evald
