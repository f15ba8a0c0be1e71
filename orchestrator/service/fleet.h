#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "metrics/sandbox/sandbox.h"
#include "orchestrator/fleet/agent.h"
#include "orchestrator/fleet/loop.h"
#include "orchestrator/fleet/process_pool.h"
#include "orchestrator/fleet/socket_directory.h"
#include "orchestrator/run/evaluation.h"
#include "orchestrator/schedule/dispatch.h"

namespace evald {

struct FleetOptions {
  std::filesystem::path binaries;  ///< folder of evald-worker and evald-metric
  std::filesystem::path log_dir;   ///< of the processes' output; exists
  std::string log_level = "warn";
  std::vector<std::string> devices = {"cpu:0"};  ///< a worker each
  int metric_processes = 1;
  SandboxOptions sandbox;
  int worker_restarts_max = 6;  ///< of one worker without progress between
  int metric_restarts_max = 6;
  double stall_timeout_s = 1800;  ///< an engine that does not come back for so long is killed
};

/// The processes of this host and the runs they work for: gives each worker that asks a trial of the
/// run that ChooseRun names, loading that run's checkpoint first, and each metric process a job;
/// passes what they report to the run it belongs to. Workers outlive runs. Loop thread only.
class Fleet {
 public:
  Fleet(Loop* loop, FleetOptions options);
  ~Fleet();

  /// From now on `run` gets devices. Workers are started for it where none run.
  void Add(std::shared_ptr<Evaluation> run, int priority, const std::string& user);
  void SetPriority(int64_t run_number, int priority);
  /// The run is over: what it still holds is revoked, its staged checkpoint dropped (or kept, by the
  /// staging budget) once no worker uses it.
  void Remove(int64_t run_number);

  /// Gives out what can be given out. Cheap when there is nothing.
  void Serve();
  /// Looks for processes that hang. To be called several times a second.
  void Tick();
  /// Ends all processes; then calls `done`.
  void StopAll(std::function<void()> done);
  /// Drops staged checkpoints of runs that are over and that no process uses.
  void ReleaseStaged();

  /// Worker and device resources as the REST interface shows them.
  Json Workers() const;
  Json Devices() const;
  /// Called after each change that Workers() shows.
  std::function<void(const std::string& worker)> on_change;

 private:
  struct Entry {
    std::shared_ptr<Evaluation> run;
    int priority = 0;
    std::string user;
  };
  struct Slot {  // a device and its worker
    std::string device;
    int64_t run = 0;                        ///< that it worked for last; 0: none
    std::optional<std::string> loading;     ///< fingerprint of the last Load sent
    std::optional<protocol::Loaded> loaded; ///< its answer
    int64_t pid = 0;
    int held = 0;                           ///< trials
  };
  void OnMessage(const std::string& id, const protocol::Message& message);
  void OnWorkerMessage(const std::string& id, const protocol::Message& message);
  void OnScorerMessage(const std::string& id, const protocol::Message& message);
  void OnLoaded(const std::string& id, const protocol::Loaded& loaded);
  void OnTrialFailed(const std::string& id, const protocol::TrialFailed& failed);
  void OnWorkerProgress(const std::string& id, const protocol::Progress& progress);
  void OnExit(const std::string& id, const ProcessExit& exit);
  void TellExhausted();

  void ServeWorker(const std::string& id, bool* gave);
  Evaluation* Choose(const Slot& slot) const;
  void StartWorker(const std::string& id, const Evaluation& run);
  void StartScorers();
  void SendLoad(const std::string& id, const Evaluation& run);
  bool ServeScorer(const std::string& id);
  Entry* Find(int64_t run_number);
  Evaluation* RunOf(int64_t wire_id);
  void KillHung(const std::string& id, const std::string& why);
  void Changed(const std::string& id);

  Loop* loop_;
  FleetOptions options_;
  SocketDirectory socket_directory_;
  std::unique_ptr<Agent> agent_;
  std::map<int64_t, Entry> runs_;
  std::map<std::string, Slot> slots_;
  std::map<std::string, Json> isolation_;  // by metric process
  std::map<std::string, StagedCheckpoint> held_;  // of runs that are over, by fingerprint
  DeviceUse use_;
  int64_t use_decayed_us_ = 0;
  bool serving_ = false;
  bool serve_again_ = false;
  bool stopping_ = false;
  std::unique_ptr<ProcessPool> workers_;
  std::unique_ptr<ProcessPool> scorers_;
};

}  // namespace evald
