#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "orchestrator/fleet_machine/fleet_machine.h"
#include "orchestrator/run_machine/run_machine.h"
#include "orchestrator/schedule/estimate.h"
#include "orchestrator/schedule/policy.h"
#include "orchestrator/simulate/cluster.h"
#include "orchestrator/simulate/drawn_tasks.h"
#include "orchestrator/simulate/score_pool.h"
#include "orchestrator/simulate/shared_link.h"
#include "orchestrator/simulate/sim_device.h"
#include "orchestrator/simulate/sim_result.h"
#include "orchestrator/simulate/wide_heap.h"

namespace evald {

/// One checkpoint evaluated on a cluster under one policy, as a sequence of discrete events. A
/// RunMachine and a FleetMachine decide, as in the daemon: which trial goes to which device, what
/// counts, what is given back, backed up or revoked. Their executor, the devices, the storage and
/// the metric pool are modelled here (docs/simulate.md). Engines of warm executors are up at time 0
/// and prompts prepared.
class Simulation {
 public:
  struct Options {
    std::string policy = "elastic";
    std::optional<Decouplings> decouplings;  ///< instead of the policy's own
    SimFaults faults;
    uint64_t seed = 1;   ///< of faults
    double weight = 16;  ///< of the estimates: documents that a prior stands for
    bool keep_spans = false;
  };

  /// `estimates`: what is expected, task by task.
  Simulation(const SimCluster& cluster, double weights_bytes, const std::vector<SimTask>& tasks,
             const std::vector<TaskEstimate>& estimates, Options options);
  SimResult Run();

 private:
  enum class Kind : int32_t {
    kStorage,
    kCopied,
    kReady,
    kWant,
    kSlice,
    kTrialFails,
    kTrialOver,
    kScored,
    kNodeLost,
    kHeartbeat,
    kOverdue
  };
  // Hundreds of thousands are queued, so an event is small.
  struct Event {
    double time = 0;
    int64_t order = 0;
    Kind kind = Kind::kWant;
    int32_t b = 0;  ///< slice, or number of a transfer
    int64_t a = 0;  ///< device, node, storage link, trial or slot
    int64_t version = 0;
    bool operator<(const Event& other) const {
      return time != other.time ? time < other.time : order < other.order;
    }
  };
  /// Of a trial: the documents that have not ended.
  struct LeftDocuments {
    double oldest = 0;      ///< when the first of them began; now if none has
    double oldest_end = 0;  ///< when the oldest ends; now if a document waits
    int64_t count = 0;
  };

  void Push(double time, Kind kind, int64_t a, int64_t b = 0, int64_t version = 0);
  void Handle(const Event& event);
  int NodeOf(int64_t device) const { return static_cast<int>(device) / cluster_.devices_per_node; }
  /// The clock of the machines, to whom 0 means never.
  int64_t micros() const;
  SimResult Finish();

  // the machines' executor (simulation_fleet.cc)
  void PlanRun(const std::vector<TaskEstimate>& estimates);
  void AddHosts();
  void TellChanges();
  void Settle();
  void Hear(int64_t device, const ProcessNews& news);
  template <typename Unmodelled>
  void Do(const Unmodelled&) {}
  void Do(const order::StartWorker& order);
  void Do(const order::Load& order);
  void Do(const order::LeaseTrial& order);
  void Do(const order::Steal& order);
  void Do(const order::Revoke& order);
  void Do(const order::TellWorkerLost& order);
  void Do(const order::TellDevices& order);
  void TakeRevoked();
  /// Workers are in the order of the devices.
  int64_t DeviceOf(const std::string& worker) const {
    return fleet_.FindWorker(worker) - fleet_.workers().data();
  }
  const std::string& IdOf(int64_t device) const { return fleet_.workers()[device].id; }

  // weights (simulation_load.cc)
  /// Nodes get the checkpoint when the fleet orders a load there, and not by themselves at time 0.
  bool staged_by_order() const {
    return cluster_.staging != SimStaging::kEach && decouplings_.load_once &&
           decouplings_.stay_warm;
  }
  size_t LinkOf(int node) const {
    return cluster_.staging == SimStaging::kEach ? static_cast<size_t>(node) : 0;
  }
  void BeginLoading();
  void BeginTransfer(int node, int64_t transfer);
  void StorageChanged(size_t link);
  void OnStorage(const Event& event);
  void OnDeviceLoaded(int64_t device);
  void Pull(int64_t device);
  void LoadByOrder(int64_t device);
  void BeginCopy(int node);
  void OnNodeStaged(int node);
  void LoseStaging(int node);
  void OnReady(int64_t device);
  void Loaded(int64_t device);

  // workers (simulation_workers.cc)
  void ScheduleWant(int64_t device, double at);
  void ScheduleNextWant(int64_t device);
  void OnWant(const Event& event);
  void Give(int64_t device, const TrialLease& lease);
  void StartTrial(int64_t device, int64_t trial);
  double PrepareSeconds(const SimTrial& trial, SimDevice* device);
  void RunDocuments(int64_t trial, double at);
  void ScheduleSlices(int64_t trial, const std::vector<double>& ends);
  void ScheduleAllSlices(SimDevice* device);
  void OnSlice(const Event& event);
  void Measure(const SimTrial& trial, const SimSlice& slice, double place_s, double longest_s);
  void OnTrialOver(int64_t trial);
  void EndOnDevice(int64_t trial);

  // what idle workers take from others (simulation_stealing.cc)
  void Beat();
  void OnHeartbeat();
  void ReportProgress(int64_t device);
  void Shorten(const ShortenOrder& order);
  void Revoke(int64_t trial);
  void WatchOverdue(const SimTrial& trial, const std::vector<PlacedDocument>& documents);
  void OnOverdue(const Event& event);

  // faults (simulation_faults.cc)
  void OnTrialFails(int64_t trial);
  void OnNodeLost();
  void LoseSlots();
  void KeepFinished(int64_t trial);
  void KeepFinishedOf(int64_t backup);
  void Interrupted(const PlacedDocument& document);
  bool kept(size_t task, int64_t document, int64_t device) const {
    return !kept_.empty() && kept_[task][document] == NodeOf(device) + 1;
  }
  bool IsSlow(int node) const { return node == std::min(1, cluster_.nodes - 1); }
  double SlownessOf(int64_t device) const {
    const double of_node = IsSlow(NodeOf(device)) ? options_.faults.slow_node : 1;
    return device == 0 ? options_.faults.slow_device * of_node : of_node;
  }
  double DeviceSecondsLeft() const;
  double SlowBound(double work_s) const;

  // scoring (simulation_scoring.cc)
  void ServeScoring();
  void OnScored(const Event& event);
  void CountScored(size_t task, DocumentRange documents);

  void Span(int64_t device, const char* name, double begin, double end, const std::string& label);

  SimCluster cluster_;
  double weights_bytes_;
  const std::vector<SimTask>& tasks_;
  Options options_;
  Decouplings decouplings_;
  std::mt19937_64 random_;

  double now_ = 0;
  int64_t next_order_ = 0;
  WideHeap<Event> events_;

  RunMachine run_;
  FleetMachine fleet_;
  RunView view_;
  bool came_back_ = false;              ///< documents are open again
  std::vector<double> prior_device_s_;  ///< by task

  std::vector<SimDevice> devices_;
  struct Node {
    bool staged = false;   ///< has the checkpoint
    bool copying = false;  ///< the checkpoint is on its way there
    bool lost = false;
    double staged_at = 0;          ///< kTree: or will have it then
    int from = -1;                 ///< kTree: the node that passes it on to this one
    int serves = 0;                ///< kTree: copies that it passes on
    std::vector<int64_t> waiting;  ///< devices
  };
  std::vector<Node> nodes_;
  std::vector<SharedLink> storage_;  ///< of each node, or one for all
  std::vector<int64_t> storage_version_;
  std::deque<SimTrial> trials_;
  bool heartbeat_due_ = false;
  std::vector<std::vector<bool>> committed_;  ///< by task and document: the first generation counts
  std::vector<int64_t> won_, listed_;         ///< documents; kept for their memory
  std::vector<PlacedDocument> placed_;        ///< likewise
  std::vector<LeftDocuments> progress_;       ///< likewise
  std::vector<TrialProgress> heartbeat_;      ///< likewise
  ScorePool pool_;
  std::vector<MetricJob> scoring_;  ///< by slot
  std::vector<int64_t> scored_;     ///< documents, by task
  /// By task and document: node + 1 that has its line in a half-written file
  std::vector<std::vector<int>> kept_;
  SimResult result_;
};

}  // namespace evald
