#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "orchestrator/fleet/agent.h"
#include "orchestrator/fleet/loop.h"
#include "orchestrator/report/progress.h"
#include "orchestrator/report/timeline.h"
#include "orchestrator/run/coordinator.h"
#include "orchestrator/run/preparation.h"
#include "orchestrator/run/process_pool.h"
#include "orchestrator/run/recovery.h"
#include "orchestrator/run/run_directory.h"
#include "orchestrator/run/run_machine.h"
#include "orchestrator/run/task_finisher.h"
#include "orchestrator/staging/stager.h"
#include "orchestrator/state/database_thread.h"
#include "orchestrator/state/run_store.h"

namespace evald {

/// One run in progress: carries out what RunMachine decides. Lives on the loop's thread; staging,
/// preparation, the database and the aggregation of finished tasks have threads of their own, which
/// hand over by Loop::Post. The order of a run:
///
///     start processes ─┬─► stage ──► load on each worker ─┐
///                      └─► prepare ──► recover ──► plan ──┴─► lease ⇄ commit ⇄ score ──► finish
class Evaluation {
 public:
  Evaluation(const RunOptions& options, RunDirectory directory);
  ~Evaluation();
  RunOutcome Run();

 private:
  struct Failure {
    ErrorKind kind;
    std::string text;
  };
  struct WorkerView {  // what a worker last said of itself
    Json engine;
    int64_t requests_done = 0;
  };

  // set-up (evaluation.cc)
  void StartProcesses();
  void StartStaging();
  void StartPreparation();
  void OnStaged();
  void OnPrepared(Suite suite);
  void Recover();
  void MaybePlan();

  // messages (evaluation_messages.cc)
  void OnMessage(const std::string& id, const protocol::Message& message);
  void OnWorkerMessage(const std::string& id, const protocol::Message& message);
  void OnScorerMessage(const std::string& id, const protocol::Message& message);
  void OnLoaded(const std::string& id, const protocol::Loaded& loaded);
  void OnSliceDone(const std::string& id, const protocol::SliceDone& done);
  void OnTrialDone(const std::string& id, const protocol::TrialDone& done);
  void OnTrialFailed(const std::string& id, const protocol::TrialFailed& failed);
  void OnJobDone(const std::string& id, const protocol::JobDone& done);
  void OnExit(const std::string& id, const ProcessExit& exit);
  void OnSpan(const std::string& id, const protocol::Span& span);

  // what follows from them
  void SendLoad(const std::string& worker);
  void ServeWorkers();
  void ServeScorers();
  void CommitGenerations(const CommittedFile& file);
  void CommitScores(const MetricJob& job, const protocol::JobDone& done);
  void FinishTask(size_t task);

  // time and the end
  void Tick();
  void CheckSilence();
  void OnSignal(int signal);
  void Fail(ErrorKind kind, const std::string& text);
  void CheckEnd();
  void BeginShutdown();
  RunOutcome Finish();
  ProgressSnapshot Snapshot() const;
  std::string Absolute(const std::string& relative) const;
  bool NeedsKind(RequestKind kind) const;

  RunOptions options_;
  const EvalConfig& config_;
  RunDirectory directory_;
  int64_t begin_us_;
  Loop loop_;
  RunStore store_;
  RunRecord record_;
  RunMachine machine_;
  Timeline timeline_;
  ProgressDisplay display_;
  std::filesystem::path socket_directory_;
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<ProcessPool> workers_;
  std::unique_ptr<ProcessPool> scorers_;
  std::unique_ptr<DatabaseThread> database_;
  std::unique_ptr<TaskFinisher> finisher_;

  std::thread staging_thread_;
  std::thread preparation_thread_;
  std::atomic<bool> cancel_{false};
  std::optional<StagedCheckpoint> staged_;
  bool staging_done_ = false;
  std::optional<Suite> suite_;
  bool planned_ = false;
  int64_t planned_at_us_ = 0;

  std::map<std::string, WorkerView> views_;
  std::map<std::string, size_t> task_index_;
  std::vector<CommittedFile> generations_;  // those that count for at least one document
  std::vector<CommittedFile> scores_;
  Json engine_info_;
  Json isolation_;
  int pending_commits_ = 0;
  std::map<size_t, TaskResult> finished_tasks_;

  // progress, updated from other threads through the loop
  int64_t stage_done_ = 0, stage_total_ = 0;
  size_t prepare_done_ = 0, prepare_total_ = 0;
  std::string stage_note_;
  int64_t generated_at_plan_ = 0;

  int signals_ = 0;
  bool draining_ = false;
  bool ending_ = false;
  std::optional<Failure> failure_;
};

}  // namespace evald
