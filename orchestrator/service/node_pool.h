#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "evald/json.h"
#include "orchestrator/fleet/loop.h"
#include "orchestrator/fleet/work_thread.h"
#include "orchestrator/launch/launch_machine.h"
#include "orchestrator/launch/launcher.h"
#include "orchestrator/service/agent_hub.h"
#include "orchestrator/service/fleet.h"
#include "orchestrator/service/job_tokens.h"

namespace evald {

/// One launcher of a service or run, and what its agents need.
struct NodePoolOptions {
  std::string name;  ///< of the launcher: letters, digits and '_'
  std::string kind;  ///< "slurm" or "command", for people
  LaunchLimits limits;
  int gpus_per_node = 0;  ///< that each agent must bring to join; 0: any number
  std::unique_ptr<Launcher> launcher;
  std::string server;     ///< the agents' listener, "https://host:port"
  std::string authority;  ///< PEM of the authority that signed the listener's certificate
  double linger_s = 600;  ///< agents end after so long without this process
};

/// The nodes of one launcher: carries out a LaunchMachine's orders, tells the machine what became
/// of the launcher's jobs and of their hosts, and keeps the jobs' tokens. The launcher's programs
/// run on a thread of the pool. The loop's thread only.
///
///     Fleet ──host──► NodePool ──event──► LaunchMachine
///                       │  ▲                  │
///                       │  └──────order───────┘
///                       └──submit, list, stop──► Launcher (its own thread)
class NodePool {
 public:
  /// Where jobs are recorded. All may be null: then the jobs end with this process, by their
  /// agents' patience.
  struct Records {
    /// Writes the job, then calls `done` on the loop.
    std::function<void(const NodeJob& job, const std::string& token_hash,
                       std::function<void()> done)>
        save;
    std::function<void(int64_t number)> forget;
    /// Records why each excluded node is excluded, by its name, in place of what was recorded.
    std::function<void(const std::map<std::string, std::string>& nodes)> exclude;
  };
  struct Earlier {  ///< what an earlier process recorded
    struct Job {
      NodeJob job;
      std::string token_hash;
    };
    std::vector<Job> jobs;
    std::map<std::string, std::string> excluded;  ///< why, by node
  };
  struct Support {
    Loop* loop = nullptr;
    Fleet* fleet = nullptr;
    AgentHub* hub = nullptr;
    JobTokens* tokens = nullptr;
  };

  /// All in `support` outlive the pool.
  NodePool(NodePoolOptions options, Support support, Records records, const Earlier& earlier);
  ~NodePool();

  /// Looks at the hosts and decides. Call it several times a second.
  void Tick(const NodeDemand& demand);
  /// All jobs end, and no further one is submitted. Calls `done` once the launcher has been told of
  /// each, or after `patience_s`.
  void StopAll(double patience_s, std::function<void()> done);
  /// From now on StopAll waits for at most `patience_s`.
  void Hurry(double patience_s);
  /// The launcher is not waited for any more, and asked nothing. Jobs whose end it has not
  /// confirmed are told to end without waiting for an answer, and the log names them.
  void Abandon();
  /// Nodes that were excluded are asked for again. False if the node is not excluded.
  bool Release(const std::string& node);

  const std::string& name() const { return options_.name; }
  /// Devices that jobs which have not started yet are to bring.
  int DevicesToCome() const;
  /// A Launcher resource of docs/openapi.json.
  Json View() const;
  /// What a run without a device waits for: jobs that are to come, and what goes wrong.
  std::vector<std::string> Awaited() const;
  bool MoreMayCome() const { return machine_.MoreMayCome(now_); }
  std::string Hopeless() const;  ///< LaunchMachine::Hopeless

 private:
  std::string HostOf(const NodeJob& job) const;
  double Now();
  void Carry();
  void RecordExcluded();
  void Do(const LaunchMachine::Order& order);
  void Submit(const NodeJob& job);
  void SendAway(const std::string& host);
  void Stop(const NodeJob& job);
  void List();
  void ReadLog(const NodeJob& job);
  void Exclude(const NodeJob& job);
  std::vector<std::string> Excluded() const;
  void Save(const NodeJob& job, std::function<void()> done);
  void CheckStopped();
  void TellEnds();
  void Ask(std::function<void()> work, WorkThread::Done done);

  NodePoolOptions options_;
  Support support_;
  Records records_;
  LaunchMachine machine_;
  std::map<std::string, std::string> recorded_excluded_;
  const double begun_ = WallSeconds();
  const int64_t begun_us_ = MonotonicMicros();
  double now_ = 0;             // of the machine
  double ends_told_at_ = 0;    // when the fleet was last told of all hosts' ends
  int telling_ = 0;            // calls of Launcher::Stop under way
  std::set<int64_t> told_;     // jobs of which the launcher has confirmed that they end
  std::atomic<int> calls_{0};  // of the launcher, under way
  double stop_until_ = 0;
  double patience_most_s_ = std::numeric_limits<double>::infinity();  // of StopAll
  std::function<void()> stopped_;
  std::vector<std::string> problems_;  // as of the last Tick; the log has them
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  /// Null once the launcher is abandoned. Last: ends before what its work uses
  std::unique_ptr<WorkThread> thread_;
};

/// "intended", "submitted", "stopping" or "over".
const char* NameOf(NodeJob::State state);
/// A job as a record of the database, and back. Throws Error(kInput).
std::string EncodeNodeJob(const NodeJob& job);
NodeJob DecodeNodeJob(const std::string& text);

}  // namespace evald
