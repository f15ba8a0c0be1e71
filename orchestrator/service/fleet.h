#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/fleet/host.h"
#include "orchestrator/fleet/loop.h"
#include "orchestrator/fleet_machine/fleet_machine.h"
#include "orchestrator/run/evaluation.h"
#include "protocol/agent_messages.h"

namespace evald {

struct FleetOptions {
  std::filesystem::path log_dir;  ///< of the local processes' output, for messages
  std::string log_level = "warn";
  int worker_restarts_max = 6;  ///< of one worker without progress between
  int metric_restarts_max = 6;
  double stall_timeout_s =
      1800;  ///< an engine, or a load, that does not come on for so long is killed
  double needless_load_s =
      5;  ///< a load that no run needs any more and that does not come on for so long is ended
  DeviceLimits device_limits;  ///< when a GPU is set aside
};

/// A host as the fleet sees it.
struct HostInfo {
  std::string name;
  std::vector<std::string> devices;  ///< a worker each
  int threads = 0;                   ///< of each worker; 0: as the run says
  int metric_processes = 1;
  std::string owner;  ///< name of the token that its agent came with; "" for the service's own
};

/// The executor of a FleetMachine, which decides what hosts and their processes do for the runs.
/// The fleet carries the machine's orders out on Hosts and Evaluations, and turns what these
/// report, and the time, into the machine's events:
///
///     Host ──message, exit──► Fleet ──event──► FleetMachine
///       ▲                       │  ▲                │
///       └──start, send, kill────┤  └──order─────────┘
///                               └──View, lease, tell──► Evaluation
///
/// One event from outside after another: the next one waits until all orders of the last are
/// carried out. What fails over one run ends that run and no other. Processes of other hosts are
/// called "<host>.w0" here, those of the local one "w0". Loop thread only.
class Fleet {
 public:
  Fleet(Loop* loop, FleetOptions options);

  // ---- hosts
  /// For the Host that is to be named `name`.
  Host::Events EventsOf(const std::string& name);
  /// A host, or what it is from now on. It is away until HostReady. `host` outlives the fleet.
  void AddHost(Host* host, const HostInfo& info);
  /// The host is there, with these processes and no other; none of them holds a trial. In its
  /// memory are the checkpoints of these fingerprints. Throws, and takes nothing, if a process is
  /// not described as it should be.
  void HostReady(const std::string& name, const std::vector<protocol::HeldProcess>& processes,
                 const std::vector<std::string>& staged);
  void HostIs(const std::string& name, HostNews news);
  /// The host, which is not there, and its processes are known no more. False, and no change, while
  /// one of its workers holds a trial, or the fleet is in the middle of an event.
  bool ForgetHost(const std::string& name);

  // ---- runs
  /// From now on `run` gets devices. Workers are started for it where none run.
  void Add(std::shared_ptr<Evaluation> run, int priority, const std::string& user);
  void SetPriority(int64_t run, int priority);
  /// The run's View says something else. The fleet looks at it in a turn of its own.
  void RunChanged(int64_t run);
  /// The run is over: what it still holds is revoked, its staged checkpoint dropped (or kept, by
  /// the staging budget) once no worker uses it.
  void Remove(int64_t run);

  /// Lets the machine know the time, and which processes are silent. To be called several times a
  /// second.
  void Tick();
  /// Starts workers of this host anew that have nothing to do and hold a checkpoint of runs that
  /// are over, for the room it takes. False when there are none, and none is on its way out.
  bool FreeStaged();
  /// Ends all processes; then calls `done`.
  void StopAll(std::function<void()> done);

  // ---- looking (fleet_view.cc)
  /// Devices of all hosts that are there, but for those that are set aside.
  int device_count() const { return machine_.device_count(); }
  /// Where a process runs, and who vouches for what it says.
  Witness WitnessOf(const std::string& id) const;
  /// Of a host that was added: "connected", "away" (it may come back at any time) or "left". "" for
  /// another.
  std::string HostState(const std::string& name) const;
  /// Worker and host resources as the REST interface shows them; hosts with "id", "state",
  /// "devices" and "staged" (fingerprints of what is in the memory of another host, as far as is
  /// known).
  Json Workers() const;
  Json Hosts() const;

  /// Called after each change that Workers() shows.
  std::function<void(const std::string& worker)> on_change;
  /// Given the staged checkpoints that nobody uses any more, whose dropping takes time. Without it
  /// they are dropped at once.
  std::function<void(StagedCheckpoint staged)> release;

 private:
  struct HostEntry {
    Host* host = nullptr;
    int threads = 0;    // HostInfo
    std::string owner;  // HostInfo
  };
  struct RunEntry {
    std::shared_ptr<Evaluation> run;
    int priority = 0;
    std::string user;
    bool changed = true;  // since the machine was told
    RunView view;         // as it was told
  };
  struct Process {     // the facts about a slot's process that the machine need not know
    ProcessSpec spec;  // of the last start
    int64_t pid = 0;
    Json isolation;                          // of a metric process: how it isolates code
    std::optional<protocol::Loaded> loaded;  // of a worker: its answer to the last Load
  };

  // fleet.cc: events
  void Take(std::function<void()> event);
  void Settle();
  void TellChanges();
  void WakeAtNext();
  AdoptedProcess Adopted(const std::string& id, const protocol::HeldProcess& process);
  void AddRow(Evaluation* run, const std::string& id, const std::string& device) const;
  void ForgetProfiles();
  void OnSilent(const std::string& id, int64_t now);
  void OnExit(const std::string& id, const ProcessExit& exit);
  void Ended(const std::string& id, const ProcessEnd& end);
  RunEntry* Find(int64_t run);
  bool Guard(RunEntry* entry, const std::string& id, const std::function<bool()>& work);

  // fleet_messages.cc: what processes say
  void OnMessage(const std::string& id, const protocol::Message& message);
  void OnWorkerMessage(const std::string& id, const protocol::Message& message);
  void OnScorerMessage(const std::string& id, const protocol::Message& message);
  void OnHello(const std::string& id, const protocol::Hello& hello);
  void OnLoaded(const std::string& id, const protocol::Loaded& loaded);
  void OnProgress(const std::string& id, const protocol::Progress& progress);
  void OnTrialMessage(const std::string& id, const protocol::Message& message);
  RunEntry* PassOn(const std::string& id, const protocol::Message& message,
                   std::optional<double>* device_s = nullptr);
  int64_t RunNamedBy(const std::string& id, const protocol::Message& message) const;
  void TakeWithdrawn(RunEntry* entry);

  // fleet_orders.cc: carrying out
  void Carry(const Order& order);
  void Do(const order::StartWorker& order);
  void Do(const order::StartScorer& order);
  void Do(const order::Stop& order);
  void Do(const order::Kill& order);
  void Do(const order::Load& order);
  void Do(const order::Follow& order);
  void Do(const order::Revoke& order);
  void Do(const order::LeaseTrial& order);
  void Do(const order::Relieve& order);
  void Do(const order::LeaseJob& order);
  void Do(const order::TellLoaded& order);
  void Do(order::TellRefused order);
  void Do(const order::TellWorkerLost& order) { TellAll(order); }
  void Do(const order::TellScorerLost& order) { TellAll(order); }
  void Do(const order::TellSetAside& order);
  void Do(const order::TellDevices& order) { TellAll(order); }
  void Do(order::TellNoWorkers order);
  void Do(order::TellNoScorers order);
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
  FleetMachine machine_;
  std::map<std::string, HostEntry> hosts_;
  std::map<int64_t, RunEntry> runs_;
  std::map<std::string, Process> processes_;       // by slot
  std::map<std::string, WorkerProfile> profiles_;  // by tag: of runs, and of workers that run
  std::map<std::string, StagedCheckpoint> kept_;   // of runs that are over, by fingerprint
  std::deque<std::function<void()>> waiting_;      // events that came while orders were carried out
  std::function<void()> stopped_;
  bool settling_ = false;
  bool stopping_ = false;
  bool woken_ = false;      // a turn of the loop is to settle
  int64_t wake_at_us_ = 0;  // when the machine is told the time beside Tick; 0: not before Tick
};

}  // namespace evald
