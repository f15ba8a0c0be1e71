#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/devices/device_book.h"
#include "orchestrator/fleet/host.h"
#include "orchestrator/fleet/loop.h"
#include "orchestrator/fleet_machine/orders.h"
#include "orchestrator/launch/node_job.h"
#include "orchestrator/launch/nodes_wanted.h"
#include "orchestrator/run/evaluation.h"
#include "protocol/agent_messages.h"

namespace evald {

class FleetMachine;
class WorkerSlot;
enum class HostNews;
struct AdoptedProcess;
struct ProcessEnd;

struct FleetOptions {
  std::filesystem::path log_dir;  ///< folder of the local processes' output; errors name it
  std::string log_level = "warn";
  int worker_restarts_max = 6;  ///< restarts of a worker that makes no progress in between
  int metric_restarts_max = 6;
  double stall_timeout_s = 1800;  ///< an engine or a load without progress for this long is killed
  /// A load that no run needs and that makes no progress is ended after this time
  double needless_load_s = 5;
  DeviceLimits device_limits;  ///< when a GPU is set aside
  /// A launcher may bring other hosts in place of those whose devices are set aside
  bool hosts_may_come = false;
};

/// A host as the fleet sees it.
struct HostInfo {
  std::string name;
  std::vector<std::string> devices;  ///< one worker each
  int threads = 0;                   ///< of each worker; 0: as many as the run's configuration says
  int metric_processes = 1;
  /// Name of the token that the host's agent came with; "" for the service's own host
  std::string owner;
};

/// A FleetMachine decides what hosts and their processes do for the runs. Fleet carries its orders
/// out on Hosts and Evaluations, and turns their reports, and the time, into events for the
/// machine:
///
///     Host ──message, exit──► Fleet ──event──► FleetMachine
///       ▲                       │  ▲                │
///       └──start, send, kill────┤  └──order─────────┘
///                               └──View, lease, tell──► Evaluation
///
/// Events from outside are taken one after another: an event waits until all orders that the
/// previous event caused are carried out. If an event or order of one run fails, that run ends and
/// no other. Processes of other hosts are called "<host>.w0" here, those of the local host "w0".
/// All methods run on the loop's thread.
class Fleet {
 public:
  Fleet(Loop* loop, FleetOptions options);
  ~Fleet();

  // ---- hosts
  /// The callbacks by which the host `name` reports to the fleet.
  Host::Events EventsOf(const std::string& name);
  /// Adds a host. If the host is known, replaces its info. The host is away until HostReady. `host`
  /// must outlive the fleet.
  void AddHost(Host* host, const HostInfo& info);
  /// The host has connected, and runs exactly `processes`. None of them holds a trial: the host's
  /// agent has made its workers give up earlier ones. `staged` are the fingerprints of the
  /// checkpoints in its memory. If the description of a process is invalid, throws and changes
  /// nothing.
  void HostReady(const std::string& name, const std::vector<protocol::HeldProcess>& processes,
                 const std::vector<std::string>& staged);
  /// The host's connection or readiness has changed (HostNews).
  void HostIs(const std::string& name, HostNews news);
  /// The host ends in `in_s` seconds, with all its processes; negative: no end is known. May be
  /// called again with a better value. AddHost forgets the end.
  void HostEnds(const std::string& name, double in_s);
  /// Forgets a host that is away or has left, and its processes. Returns false and changes nothing
  /// if one of its workers holds a trial, or if the fleet is in the middle of an event.
  bool ForgetHost(const std::string& name);

  // ---- runs
  /// `run` gets devices from now on. Workers are started for it if none run.
  void Add(std::shared_ptr<Evaluation> run, int priority, const std::string& user);
  void SetPriority(int64_t run, int priority);
  /// The run's View has changed. The fleet looks at it in a later turn of the loop.
  void RunChanged(int64_t run);
  /// The run is over. Its leases are revoked. Its staged checkpoint is dropped (or kept, by the
  /// staging budget) once no worker uses it.
  void Remove(int64_t run);

  /// What is asked for and not there yet, for runs that wait for a device; "": nothing.
  void Awaits(const std::string& nodes, bool hosts_come);

  /// Tells the machine the time, and which processes have been silent for too long. Call it several
  /// times a second.
  void Tick();
  /// Restarts idle workers of the service's own host that hold a checkpoint of runs that are over,
  /// to free its memory. Returns false if no worker holds or loads such a checkpoint.
  bool FreeStaged();
  /// Ends all processes, then calls `done`.
  void StopAll(std::function<void()> done);

  // ---- looking (fleet_view.cc)
  /// Devices of all hosts that are there, without those that are set aside.
  int device_count() const;
  /// The host of a process, and the token with which that host's agent joined.
  Witness WitnessOf(const std::string& id) const;
  /// State of a host that was added: "connected", "away" (it may come back at any time) or "left".
  /// "" for an unknown host.
  std::string HostState(const std::string& name) const;
  /// The host as the launcher of its job sees it; not connected for an unknown host.
  NodeHost NodeHostOf(const std::string& name) const;
  /// Work of the runs, and devices that are there.
  NodeDemand Demand() const;
  /// Device seconds that the open work of a run is expected to take; nullopt if it is not planned,
  /// or not at work.
  std::optional<double> OpenSeconds(int64_t run) const;
  /// Worker and host resources as the REST interface shows them. Hosts have "id", "state",
  /// "devices", "ends_at" (seconds since 1970, null if no end is known) and "staged" (fingerprints
  /// of the checkpoints that are known to be in the memory of a host other than the service's own).
  Json Workers() const;
  Json Hosts() const;

  /// Called after each change that Workers() shows.
  std::function<void(const std::string& worker)> on_change;
  /// Called with each staged checkpoint that is no longer used, so that another thread can drop it
  /// (which takes time). Without this callback the fleet drops the checkpoint itself, at once.
  std::function<void(StagedCheckpoint staged)> release;

 private:
  struct HostEntry {
    Host* host = nullptr;
    int threads = 0;           // HostInfo
    std::string owner;         // HostInfo
    double ends_at = 0;        // when it ends, in seconds since 1970; 0: no end is known
    std::string last_failure;  ///< of a trial or job there; "" for none
  };
  struct RunEntry {
    std::shared_ptr<Evaluation> run;
    int priority = 0;
    std::string user;
    bool changed = true;  // since the machine was told of it
    RunView view;         // the view that the machine was given last
  };
  struct Process {     // facts about a slot's process that the machine need not know
    ProcessSpec spec;  // of its last start
    int64_t pid = 0;
    Json isolation;                          // of a metric process: how it isolates code
    std::optional<protocol::Loaded> loaded;  // a worker's answer to the last Load
    int64_t killed_us = 0;                   // when its agent was told to kill it; 0: it was not
    std::map<int64_t, int64_t> finished;     // requests by trial, as its last heartbeats said
  };

  // fleet.cc: events
  void Take(std::function<void()> event);
  void Settle();
  void TellChanges();
  void WakeAtNext();
  AdoptedProcess Adopted(const std::string& id, const protocol::HeldProcess& process);
  void AddRow(Evaluation* run, const std::string& id, const std::string& device) const;
  void ForgetProfiles();
  bool HostWorks(const std::string& host) const;
  void OnSilent(const std::string& id, int64_t now);
  void OnExit(const std::string& id, const ProcessExit& exit);
  void Ended(const std::string& id, const ProcessEnd& end);
  RunEntry* Find(int64_t run);
  bool Guard(RunEntry* entry, const std::string& id, const std::function<bool()>& work);

  // fleet_messages.cc: what processes say
  void OnMessage(const std::string& id, const protocol::Message& message);
  void OnWorkerMessage(const std::string& id, const protocol::Message& message);
  void OnMetricProcessMessage(const std::string& id, const protocol::Message& message);
  void OnHello(const std::string& id, const protocol::Hello& hello);
  void OnLoaded(const std::string& id, const protocol::Loaded& loaded);
  void OnProgress(const std::string& id, const protocol::Progress& progress);
  void NoteFinished(const std::string& id, const protocol::Progress& progress, int64_t now);
  void OnTrialMessage(const std::string& id, const protocol::Message& message);
  RunEntry* PassOn(const std::string& id, const protocol::Message& message,
                   std::optional<double>* device_s = nullptr);
  void NoteFailure(const std::string& id, const protocol::Message& message);
  int64_t RunNamedBy(const std::string& id, const protocol::Message& message) const;
  void TakeRevoked(RunEntry* entry);

  // fleet_orders.cc: carrying out orders
  void Carry(const Order& order);
  void Do(const order::StartWorker& order);
  void Do(const order::StartMetricProcess& order);
  void Do(const order::Stop& order);
  void Do(const order::Kill& order);
  void Do(const order::Load& order);
  void Do(const order::Follow& order);
  void Do(const order::Revoke& order);
  void Do(const order::TakeBack& order);
  void Do(const order::HandBack& order);
  void Do(const order::TakeStalled& order);
  void Do(const order::TakeJobsBack& order);
  void Do(const order::LeaseTrial& order);
  void Do(const order::Steal& order);
  void Do(const order::LeaseJob& order);
  void Do(const order::TellLoaded& order);
  void Do(order::TellRefused order);
  void Do(const order::TellWorkerLost& order) { TellAll(order); }
  void Do(const order::TellMetricProcessLost& order) { TellAll(order); }
  void Do(const order::TellSetAside& order);
  void Do(const order::TellDevices& order) { TellAll(order); }
  void Do(order::TellNoWorkers order);
  void Do(order::TellNoMetricProcesses order);
  void Do(const order::TellNobodyElse& order) { TellRun(order.run, order); }
  void Do(order::TellVain order);
  void Do(const order::TellWaiting& order) { TellRun(order.run, order); }
  void Do(const order::DropStaged& order);
  void Do(const order::ShowChange& order);
  void Do(const order::StopHosts& order);
  void Do(const order::Ignored& order);
  void Start(const std::string& id);
  void Send(const std::string& id, const protocol::Message& message);
  const Json& EngineOf(const std::string& worker) const;
  bool Give(RunEntry* entry, const std::string& worker, const protocol::Lease& lease);
  void TellRun(int64_t run, const FleetNews& news);
  void TellAll(const FleetNews& news);
  std::string SeeLogs() const { return "; see " + options_.log_dir.string(); }
  ProcessSpec WorkerSpec(const WorkerSlot& slot, const std::string& profile) const;

  Loop* loop_;
  FleetOptions options_;
  // A pointer: files that only use Fleet need not be compiled again if FleetMachine changes.
  const std::unique_ptr<FleetMachine> owned_machine_;
  FleetMachine& machine_;
  std::map<std::string, HostEntry> hosts_;
  std::map<int64_t, RunEntry> runs_;
  std::map<std::string, Process> processes_;  // by slot
  // The profiles of all runs and of all running workers, by tag
  std::map<std::string, WorkerProfile> profiles_;
  std::map<std::string, StagedCheckpoint> kept_;  // staged by runs that are over, by fingerprint
  std::deque<std::function<void()>> waiting_;     // events that came while orders were carried out
  std::function<void()> stopped_;
  bool hosts_end_ = false;  // the end of some host is or was known
  bool settling_ = false;
  bool stopping_ = false;
  bool woken_ = false;  // a turn of the loop will call Settle
  // A time before the next Tick at which the fleet will call the machine's Tick too; 0: none.
  int64_t wake_at_us_ = 0;
};

}  // namespace evald
