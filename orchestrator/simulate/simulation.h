#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/schedule/corrections.h"
#include "orchestrator/schedule/doubling.h"
#include "orchestrator/schedule/estimate.h"
#include "orchestrator/schedule/policy.h"
#include "orchestrator/schedule/stealing.h"
#include "orchestrator/simulate/cluster.h"
#include "orchestrator/simulate/device_queue.h"
#include "orchestrator/simulate/draw.h"
#include "orchestrator/simulate/score_pool.h"
#include "orchestrator/simulate/shared_link.h"

namespace evald {

/// What goes wrong in a simulation.
struct SimFaults {
  double trial_failure_rate = 0;         ///< share of trials that fail somewhere on their way
  std::optional<double> node_lost_at_s;  ///< the last node and all on it are gone from then on
  double slow_device = 1;  ///< the first device takes so many times as long as it says
};

/// A stretch of a device's time in the simulation; seconds.
struct SimSpan {
  int device = 0;
  const char* name = "";  ///< start, load, prepare, generate, score
  double begin = 0, end = 0;
  std::string label;  ///< of a trial: its tasks
};

struct SimResult {
  double makespan_s = 0;     ///< until the last document is scored
  double weights_in_s = 0;   ///< when the last device had them for the first time
  double device_work_s = 0;  ///< device seconds of all documents, each once
  double longest_request_s = 0;
  double first_generation_s =
      0;                    ///< shortest request of a task that is scored; infinity when none is
  double score_work_s = 0;  ///< CPU seconds
  double stage_s = 0;       ///< of a node, at the storage's limit
  double idle_share = 0;    ///< device time without a request, of that after weights-in
  double generate_share =
      0;  ///< of the time of devices that were not lost: with a request under way
  std::map<std::string, double>
      lost_shares;  ///< of the same: start, load (and waiting for it), prepare, score
  std::vector<double> task_scored_s;  ///< when each task's score was known
  int64_t trials = 0;
  int64_t trials_failed = 0;
  int64_t events = 0;           ///< that were handled
  int64_t documents_again = 0;  ///< that were computed more than once
  int64_t trials_doubled = 0;   ///< of which a copy was given to an idle device
  int64_t documents_scored = 0;
  double estimate_error =
      0;  ///< of the device seconds expected, as a factor, mean over tasks by work
  double left_bound_s = 0;     ///< with faults: none can be faster than what they have left to do
  std::vector<SimSpan> spans;  ///< when asked for

  /// No schedule can be faster (bound.h).
  double bound_s(const SimCluster& cluster) const;
};

/// One checkpoint evaluated on a cluster under one policy, as a sequence of discrete events. The
/// policy, the open work and the estimates are the daemon's own code; devices, storage and the
/// metric pool are modelled (docs/simulate.md). Engines of warm executors are up at time 0 and
/// prompts prepared.
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
  enum class Kind {
    kStorage,
    kReady,
    kAsk,
    kSlice,
    kTrialFails,
    kTrialOver,
    kScored,
    kNodeLost,
    kHeartbeat,
    kOverdue,
    kLate
  };
  enum Cause { kStart, kLoad, kPrepare, kScore };
  static constexpr std::array<const char*, 4> kCauses = {"start", "load", "prepare", "score"};
  struct Event {
    double time = 0;
    int64_t order = 0;
    Kind kind = Kind::kAsk;
    int64_t a = 0;  ///< device, node, trial or job
    int64_t b = 0;  ///< slice
    int64_t version = 0;
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };
  struct Slice {
    size_t task = 0;
    DocumentRange documents;
    bool done = false;
    bool kept = false;  ///< its lines are there from an earlier attempt
  };
  struct Trial {
    int device = 0;
    std::vector<Slice> slices;
    size_t slices_left = 0;
    int64_t version = 0;
    double begin = 0;
    bool over = false;
    bool copy = false;
    int64_t partner = -1;  ///< its live copy, or the trial that it is a copy of
    int copies = 0;        ///< that were made of it
    double score_s = 0;    ///< when the device scores
  };
  struct Device {
    explicit Device(int places) : queue(places) {}
    DeviceQueue queue;
    bool lost = false;
    int64_t ask_version = 0;
    double weights_in = 0;
    double load_begin = 0;
    std::vector<bool> prepared;     ///< by dataset
    std::array<double, 4> spent{};  ///< by cause
    std::vector<int64_t> trials;    ///< under way
    int64_t pending = -1;           ///< trial that waits for the weights its executor loads
  };

  struct Scoring {
    ScoreJob job;
    int slot = -1;  ///< -1: nobody runs it, or not any more
  };

  void Push(double time, Kind kind, int64_t a, int64_t b = 0, int64_t version = 0);
  void Handle(const Event& event);
  int NodeOf(int64_t device) const { return static_cast<int>(device) / cluster_.devices_per_node; }

  // weights (simulation_load.cc)
  void BeginLoading();
  void BeginTransfer(int node, int64_t transfer);
  void StorageChanged(int node);
  void OnStorage(const Event& event);
  void OnReady(int64_t device);

  // devices
  void OnAsk(const Event& event);
  void ScheduleAsk(int64_t device);
  bool GiveTrial(int64_t device);
  bool GiveOpen(int64_t device);
  void AddSlices(int64_t device, size_t task, DocumentRange range, Trial* trial);
  void StartTrial(int64_t device, Trial trial);
  void RunDocuments(int64_t trial, double at);
  void ScheduleSlices(int64_t trial, const std::vector<double>& ends);
  void ScheduleAllSlices(Device* device);
  void WakeIdle(int64_t devices);
  double PrepareSeconds(const Trial& trial, Device* device);
  void OnSlice(const Event& event);
  void WatchOverdue(const PlacedDocument& document, double age_s);
  void OnOverdue(const Event& event);
  void OnTrialOver(int64_t trial);

  // stealing (simulation_stealing.cc)
  bool Steal(int64_t device);
  bool TakeBack(const Theft& theft);
  void Report(int64_t device);
  void OnHeartbeat();

  // copies of late trials (simulation_doubling.cc)
  bool doubles() const;
  void ReportBegun(int64_t device);
  void WatchLate();
  void OnLate();
  bool Double(int64_t device);
  void CloseCommitted(int64_t trial);
  void Withdraw(int64_t trial);
  void Part(Trial* trial);

  // faults (simulation_faults.cc)
  void OnTrialFails(int64_t trial);
  void OnNodeLost();
  void LoseSlots();
  void GiveBack(Trial* trial);
  void KeepFinished(int64_t trial);
  void Interrupted(const PlacedDocument& document);
  double SlownessOf(int64_t device) const { return device == 0 ? options_.faults.slow_device : 1; }
  double DeviceSecondsLeft() const;

  // scoring
  void AddScoring(size_t task, int64_t documents);
  void ServeScoring();
  void OnScored(const Event& event);

  void Span(int64_t device, const char* name, double begin, double end, const std::string& label);
  SimResult Finish();

  SimCluster cluster_;
  double weights_bytes_;
  const std::vector<SimTask>& tasks_;
  Options options_;
  std::unique_ptr<Policy> policy_;
  Decouplings decouplings_;
  OpenWork work_;
  Corrections costs_;
  std::mt19937_64 random_;

  double now_ = 0;
  int64_t next_order_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<Device> devices_;
  std::vector<SharedLink> storage_;
  std::vector<int64_t> storage_version_;
  std::vector<Trial> trials_;
  std::set<int64_t> idle_;  ///< devices that asked and got nothing
  Stealing stealing_;
  bool stealing_began_ =
      false;  ///< somebody was idle: from then on devices report what they have waiting
  bool heartbeat_due_ = false;
  Doubling doubling_;
  std::optional<double> late_watched_;        ///< when somebody looks for what is late
  std::vector<std::vector<bool>> committed_;  ///< by task and document: the first generation counts
  ScorePool pool_;
  std::vector<Scoring> scoring_;       ///< by number
  std::vector<int64_t> free_numbers_;  ///< of jobs that are over
  std::vector<int64_t> scored_;        ///< documents, by task
  std::vector<std::vector<int>>
      kept_;  ///< by task and document: node + 1 that has its line in a half-written file
  SimResult result_;
};

}  // namespace evald
