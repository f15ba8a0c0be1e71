#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orchestrator/devices/device_book.h"
#include "orchestrator/fleet/host.h"
#include "orchestrator/fleet/loop.h"
#include "orchestrator/fleet/process_pool.h"
#include "orchestrator/run/evaluation.h"
#include "orchestrator/schedule/dispatch.h"
#include "protocol/agent_messages.h"

namespace evald {

struct FleetOptions {
  std::filesystem::path log_dir;  ///< of the local processes' output, for messages
  std::string log_level = "warn";
  int worker_restarts_max = 6;  ///< of one worker without progress between
  int metric_restarts_max = 6;
  double stall_timeout_s = 1800;  ///< an engine, or a load, that does not come on for so long is killed
  double needless_load_s = 5;     ///< a load that no run needs any more and that does not come on for so long is ended
  DeviceLimits device_limits;     ///< when a GPU is set aside
};

/// A host as the fleet sees it.
struct HostInfo {
  std::string name;
  std::vector<std::string> devices;  ///< a worker each
  int threads = 0;                   ///< of each worker; 0: as the run says
  int metric_processes = 1;
};

/// The hosts, their processes, and the runs they work for: gives each worker that asks a trial of the
/// run that ChooseRun names, loading that run's checkpoint first, and each metric process a job;
/// passes what they report to the run it belongs to. Workers outlive runs. Processes of other hosts
/// are called "<host>.w0" here, those of the local one "w0". A GPU that fails again and again is set
/// aside (DeviceBook) until its host joins anew. Loop thread only.
class Fleet {
 public:
  Fleet(Loop* loop, FleetOptions options);
  ~Fleet();

  // ---- hosts
  /// For the Host that is to be named `name`.
  Host::Events EventsOf(const std::string& name);
  /// A host, or what it is from now on. It is away until HostReady. `host` outlives the fleet.
  void AddHost(Host* host, const HostInfo& info);
  /// The host is there, with these processes and no other; none of them holds a trial. In its memory are the
  /// checkpoints of these fingerprints.
  void HostReady(const std::string& name, const std::vector<protocol::HeldProcess>& processes,
                 const std::vector<std::string>& staged);
  /// It cannot be reached: it is given nothing, and what it holds waits for the heartbeat's time-out.
  void HostAway(const std::string& name);
  /// It can be reached again, and missed nothing.
  void HostBack(const std::string& name);
  /// It is given nothing more.
  void HostLeaving(const std::string& name);
  /// It holds nothing and ends with its processes, until a HostReady: nobody waits for it.
  void HostLeft(const std::string& name);
  bool HostHere(const std::string& name) const;
  /// Of a host that was added: "connected", "away" (it may come back at any time) or "left".
  std::string_view HostState(const std::string& name) const;
  /// Devices of all hosts that are there, but for those that are set aside.
  int device_count() const;

  // ---- runs

  /// From now on `run` gets devices. Workers are started for it where none run.
  void Add(std::shared_ptr<Evaluation> run, int priority, const std::string& user);
  void SetPriority(int64_t run_number, int priority);
  /// The run is over: what it still holds is revoked, its staged checkpoint dropped (or kept, by the
  /// staging budget) once no worker uses it.
  void Remove(int64_t run_number);

  /// Gives out what can be given out. Cheap when there is nothing. What fails while a run is served ends that run; the
  /// others are served on.
  void Serve();
  /// Looks for processes that hang. To be called several times a second.
  void Tick();
  /// Ends all processes; then calls `done`.
  void StopAll(std::function<void()> done);
  /// Drops staged checkpoints of runs that are over and that no process uses.
  void ReleaseStaged();
  /// Starts workers of this host anew that have nothing to do and hold a checkpoint of runs that are
  /// over, for the room it takes. False when there are none, and none is on its way out.
  bool FreeStaged();

  /// Worker and device resources as the REST interface shows them. A host that left has none.
  Json Workers() const;
  Json Devices(const std::string& host) const;
  /// Fingerprints of what is in the memory of another host, as far as is known.
  const std::set<std::string>& Staged(const std::string& host) const { return hosts_.at(host).staged; }
  /// Names of all hosts.
  std::vector<std::string> HostNames() const;
  /// Called after each change that Workers() shows.
  std::function<void(const std::string& worker)> on_change;
  /// Given the staged checkpoints that nobody uses any more, whose dropping takes time. Without it they are dropped
  /// at once.
  std::function<void(StagedCheckpoint staged)> release;

 private:
  struct Entry {
    std::shared_ptr<Evaluation> run;
    int priority = 0;
    std::string user;
    int64_t waits_since_us = 0;  ///< no worker that is there can do what it needs; 0: one can
    std::map<std::string, int> ended_loads;  ///< by worker: how often it ended over a load, while none had succeeded
    std::string load_ended;                  ///< how the last one did
  };
  struct HostEntry {
    Host* host = nullptr;
    HostInfo info;
    bool here = false;
    bool leaving = false;
    bool left = false;
    std::set<std::string> staged;       ///< fingerprints of what is in its memory, as far as is known
    double stage_bytes_per_s = 1e9;     ///< at which a checkpoint gets there; a guess until the first
  };
  struct Slot {  // a device and its worker
    std::string host;
    std::string device;  // "": its host has it no more
    int64_t run = 0;                        ///< that it worked for last; 0: none
    std::optional<std::string> loading;     ///< fingerprint of the last Load sent
    std::optional<protocol::Loaded> loaded; ///< its answer
    int64_t pid = 0;
    std::string waits;  ///< who holds its device, so that the worker is not there yet; "": nobody
    bool computes_on_gpu = false;  ///< its program does; with other engines the device is only a name
    bool refuses = false;  ///< it can make no engine of what it was started with
    /// What it had been started with (TagOf) when its restarts were used up. It is not started with that again.
    std::set<std::string> spent;
    bool excused = false;  ///< it said why it ends, and that its device is not at fault
    int64_t load_sent_us = 0;
    int64_t load_moved_us = 0;  ///< when the Load was sent, or more bytes were pulled for it
    int64_t pulled = 0, to_pull = 0;  ///< bytes, while it loads or follows
    bool follows = false;  ///< its engine can
    /// What it was last told to follow: of which run, and which time.
    std::optional<std::pair<int64_t, int>> following;
    std::set<std::pair<int64_t, int>> held;  ///< trials, with their attempts

    bool loads() const { return loading && (!loaded || loaded->fingerprint != *loading); }
    bool pulls() const { return loads() || (following && !loading); }
  };
  // The host of each process.
  class HostRouter : public Host {
   public:
    explicit HostRouter(Fleet* fleet) : fleet_(fleet) {}
    void Start(const ProcessSpec& spec) override;
    void Send(const std::string& id, const protocol::Message& message) override;
    void Kill(const std::string& id) override;
    void StopAll(std::chrono::milliseconds grace, std::function<void()> done) override;

   private:
    Fleet* fleet_;
  };
  void ShowRow(Evaluation* run, const std::string& id) const;
  bool Usable(const std::string& id) const;
  bool HasGpuFor(const Evaluation& run) const;
  /// What a worker is started with: runs of the same profile share it.
  static std::string TagOf(const WorkerProfile& profile);
  static std::string DeviceOf(const Slot& slot) { return slot.host + "/" + slot.device; }
  /// Why the worker's device is set aside.
  std::optional<std::string> Aside(const std::string& id) const;
  bool AllAside() const;
  const HostEntry& HostOf(const std::string& id) const;
  void TellDevices();
  Evaluation* NewestRun() const;
  void StartWhatIsMissing(const std::string& host);
  void Abandon(const std::string& id);
  void Retire(ProcessPool* pool, const std::string& id);
  void AdoptProcess(const std::string& id, const protocol::HeldProcess& process);
  void OnMessage(const std::string& id, const protocol::Message& message);
  void OnWorkerMessage(const std::string& id, const protocol::Message& message);
  void OnWaiting(const std::string& id, const protocol::Hello& hello);
  void OnScorerMessage(const std::string& id, const protocol::Message& message);
  void OnLoaded(const std::string& id, const protocol::Loaded& loaded);
  void OnTrialFailed(const std::string& id, const protocol::TrialFailed& failed);
  void OnWorkerProgress(const std::string& id, const protocol::Progress& progress);
  void Relieve(const std::string& id);
  bool RelieveBy(const std::string& id, Evaluation* run);
  void Give(const std::string& id, const protocol::Lease& lease);
  void SendWithdrawn(Evaluation* run);
  void OnExit(const std::string& id, const ProcessExit& exit, bool by_itself = true);
  void OnWorkerExit(const std::string& id, const ProcessExit& exit, bool by_itself);
  void OnRefusal(const std::string& id, const std::string& why);
  Evaluation* StartedFor(const std::string& id);
  bool StartsUnproven(const std::string& id);
  bool MayNotStartAgain(const std::string& id);
  bool Spent(const std::string& id, const Evaluation& run) const;
  bool Exhausted(const Evaluation& run) const;
  void ServeGivenUp();
  bool LoadsUnproven(const Slot& slot);
  bool TriedInVain(const std::string& id, const Evaluation& run) const;
  bool MayYetLoad(const Evaluation& run) const;
  void TellVain();
  void TellExhausted();
  std::string WaitsFor(const Evaluation& run) const;
  std::string WhyNot(const std::string& id) const;
  void TellWaiting(int64_t now);

  void ServeRound();
  bool Guard(int64_t run_number, const std::string& id, const std::function<bool()>& serve);
  bool ServeWorker(const std::string& id);
  bool ServeWorkerFor(const std::string& id, Evaluation* run);
  Evaluation* Choose(const std::string& id) const;
  bool Suits(const std::string& id, const Evaluation& run) const;
  std::set<std::string> FingerprintsOfRuns() const;
  bool HostHas(const std::string& host, const Evaluation& run) const;
  bool WorthLoading(const Slot& slot, const Evaluation& run) const;
  void NoteStaged(const Slot& slot, const std::string& fingerprint);
  void StartWorker(const std::string& id, const Evaluation& run);
  void StartScorers(const std::string& host);
  void SendLoad(const std::string& id, const Evaluation& run);
  void FollowStaging(const std::string& id);
  void TellToFollow(const std::string& id, const Evaluation& run);
  bool ServeScorer(const std::string& id, bool own_only);
  Entry* Find(int64_t run_number);
  Evaluation* RunOf(int64_t wire_id);
  Evaluation* RunNamedBy(const std::string& id, const protocol::Message& message);
  void KillHung(const std::string& id, const std::string& why);
  bool Needed(const std::string& id, const Slot& slot) const;
  void EndStalledLoads(int64_t now);
  void Changed(const std::string& id);

  Loop* loop_;
  FleetOptions options_;
  HostRouter router_;
  std::map<std::string, HostEntry> hosts_;
  std::map<std::string, std::pair<std::string, std::string>> places_;  // of each process: host, name there
  std::map<int64_t, Entry> runs_;
  std::map<std::string, Slot> slots_;
  std::map<std::string, Json> isolation_;  // by metric process
  std::map<std::string, StagedCheckpoint> held_;  // of runs that are over, by fingerprint
  DeviceBook devices_;
  DeviceUse use_;
  int64_t use_decayed_us_ = 0;
  bool serving_ = false;
  bool serve_again_ = false;
  bool stopping_ = false;
  ProcessPool workers_;
  ProcessPool scorers_;
};

}  // namespace evald
