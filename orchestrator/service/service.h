#pragma once

#include <atomic>
#include <deque>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "orchestrator/fleet/loop.h"
#include "orchestrator/fleet/work_thread.h"
#include "orchestrator/prepare/child.h"
#include "orchestrator/run/evaluation.h"
#include "orchestrator/service/agent_hub.h"
#include "orchestrator/service/engine_access.h"
#include "orchestrator/service/fleet.h"
#include "orchestrator/service/gate_turns.h"
#include "orchestrator/service/job_tokens.h"
#include "orchestrator/service/judging.h"
#include "orchestrator/service/node_pool.h"
#include "orchestrator/service/run_queue.h"
#include "orchestrator/service/run_service.h"
#include "orchestrator/service/workloads.h"
#include "orchestrator/state/database_thread.h"
#include "orchestrator/state/service_store.h"
#include "orchestrator/verdict/judgement.h"

namespace evald {

struct ServiceOptions {
  std::filesystem::path binaries;    ///< folder of evald-worker and evald-metric
  std::filesystem::path state_dir;   ///< the database and logs
  std::filesystem::path output_dir;  ///< folders of runs
  std::filesystem::path cache_dir;   ///< prepared tasks
  uint64_t cache_bytes_max = kCacheBytesMax;
  std::string log_level = "warn";
  std::vector<std::string> devices = {"cpu:0"};  ///< one worker each
  int threads = 1;                               ///< of each worker
  int metric_processes = 1;
  SandboxOptions sandbox;
  TaskCodeOptions task_code;  ///< for submissions that ask for it
  std::filesystem::path staging_root;
  uint64_t staging_keep = 0;
  double linger_s = 600;  ///< how long this host's agent waits for another service
  int active_max = 2;     ///< runs at work at once, so that the next is staged while one computes
  ReadRoots roots;        ///< folders below which everything that submitted runs name is read
  LimitsConfig limits;    ///< upper limits for submitted runs
  EngineAccess engines;   ///< permissions of submitted runs' engines
  bool launches = false;  ///< AddLaunchers will be called
  int runs_per_user_max = 1000;  ///< unfinished runs of one user; user "" has no limit
  /// Runs of one user that ended before anything was computed; older ones are removed
  int unused_per_user_max = 100;
  int paused_per_user_max =
      8;  ///< the same of runs that were paused at work, and keep what they prepared
};

/// The service: takes runs, keeps them in the database, works on them by priority with one fleet of
/// warm workers, and tells followers. Submitted runs survive a kill of this process: the next one
/// goes on with them. RunService's methods may be called from any thread. Run, Stop and the
/// callbacks belong to the loop's thread.
class Service : public RunService {
 public:
  /// Opens the database and goes on with the runs of the service before. Throws Error(kUsage) if
  /// another service holds the state folder, and Error(kInfrastructure).
  explicit Service(ServiceOptions options);
  ~Service() override;

  /// Works until stopped. SIGTERM and SIGINT drain: trials under way are finished, and runs stay
  /// queued for the next start. A second signal stops at once. Throws Error(kInfrastructure) if the
  /// database could not be written, or if the agent of this host cannot be started.
  void Run();
  Loop* loop() { return &loop_; }

  void Submit(Submission submission, Done<Submitted> done) override {
    Submit(std::move(submission), std::move(done), {});
  }
  /// The same. The judging of the submission stops early once `cancelled` is true. Any thread may
  /// call `cancelled`.
  void Submit(Submission submission, Done<Submitted> done, Cancelled cancelled);
  void Act(const std::string& run, RunAction action, Done<Json> done) override;
  void SetPriority(const std::string& run, int priority, Done<Json> done) override;
  void Timeline(const std::string& run, Done<Json> done) override;
  void Samples(const std::string& run, const std::string& task, bool renew,
               Done<std::shared_ptr<const SamplesSoFar>> done) override;
  void SetLabels(const std::string& run, LabelChange change, Done<Json> done) override;
  void Announce(const std::filesystem::path& checkpoint, const std::string& user,
                Done<Json> done) override;
  std::shared_ptr<const ServiceView> View() const override;
  RunPage Runs(const RunFilter& filter) const override;
  std::optional<Json> Run(const std::string& run) const override;
  std::optional<std::filesystem::path> Directory(const std::string& run) const override;
  std::vector<Event> EventsAfter(const std::string& run, int64_t sequence,
                                 int limit) const override;
  std::shared_ptr<void> OnEvents(std::function<void()> listener) override;

  // For the watches of this service (watches.h). Any thread.
  /// Has a watch of `folder` by this eval.yaml judged when it is the user's turn. Then calls `done`
  /// on the loop: with an Error if the service would refuse all that the watch submits, with
  /// OverQuota if too many judgements wait.
  void CheckWatch(Submission submission, const std::filesystem::path& folder,
                  std::function<void(const std::optional<Refusal>&)> done);
  const ReadRoots& roots() const { return options_.roots; }
  std::vector<WatchRow> SavedWatches() const;
  /// Calls `done` on the loop once the row is on disk.
  void SaveWatch(WatchRow row, std::function<void()> done);
  void DropWatch(const std::string& watch, std::function<void()> done);
  /// Does `work`, which looks at folders that may be slow, on another thread; then calls `done` on
  /// the loop.
  void LookBeside(std::function<void()> work, WorkThread::Done done);
  /// Tells followers of an event that concerns no run.
  void Tell(const std::string& type, Json data);
  /// The agents of hosts. Loop thread only, except for its files().
  AgentHub* agents() { return hub_.get(); }

  /// Launchers that bring nodes when work is open, and take them back. Goes on with the jobs of the
  /// service before. Before Run. Each `limits.prefix` is set here.
  struct LauncherMaker {
    NodePoolOptions options;  ///< without the launcher
    /// Makes the launcher, whose jobs' names begin with `prefix`
    std::function<std::unique_ptr<Launcher>(const std::string& prefix)> make;
  };
  void AddLaunchers(std::vector<LauncherMaker> makers);
  /// For http::TokenAuth::AddChanging.
  const JobTokens& job_tokens() const { return job_tokens_; }
  void ReleaseNode(const std::string& launcher, const std::string& node, Done<Json> done) override;

  /// Called by Announce: whether a watch covers the checkpoint's folder; that watch then looks at
  /// once. Folders are compared by name, or (`look`) by the file system, which may be slow. Any
  /// thread.
  std::function<bool(const std::filesystem::path& checkpoint, bool look)> on_announce;

 private:
  // the configuration of a submission (service_configure.cc)
  /// The submitted eval.yaml as a configuration, with the settings that belong to the host.
  EvalConfig Resolve(const Submission& submission, EvalOverrides::Folders folders) const;
  EvalConfig Parse(const Submission& submission, EvalOverrides::Folders folders) const;
  EvalConfig ForThisHost(EvalConfig config) const;
  /// Resolve, and then judges the files that the configuration names.
  EvalConfig Configure(const Submission& submission, const Cancelled& cancelled = {}) const;
  /// Also judges the tasks, and the checkpoint if `weights`.
  EvalConfig ReadSubmission(const Submission& submission, bool weights,
                            const Cancelled& cancelled) const;

  // submitting (service_submit.cc)
  struct Asked {  ///< a submission on its way
    Submission submission;
    Done<Submitted> done;
    Cancelled cancelled;
  };
  using AskedPtr = std::shared_ptr<const Asked>;
  using Registered = std::function<void(const Answer<Submitted>&)>;
  void AnswerIfKnown(const AskedPtr& asked, std::function<void()> otherwise);
  void AnswerKnown(const RunRow& known, const Submission& submission, const Registered& done);
  void HaveJudged(const std::string& user, Cancelled cancelled, std::function<void()> work,
                  std::function<void(const std::optional<Refusal>&)> then);
  std::optional<OverQuota> OverLimit(const std::string& user) const;
  void Judge(const AskedPtr& asked);
  void Register(std::shared_ptr<EvalConfig> config, const AskedPtr& asked);
  void AddRow(std::shared_ptr<QueuedRun> run, const Submission& submission, const Registered& done);
  void OnRegistered(std::shared_ptr<QueuedRun> run, const RunRow& row, const Registered& done);
  void Join(QueuedRun run, const Registered& done);
  void ForgetFolder(std::shared_ptr<QueuedRun> run, const RunRow& known,
                    const Submission& submission, const Registered& done);
  /// Whether the run's row is still being written. If so, `then` is called once the run is in the
  /// queue or has been refused.
  bool DeferWhileRegistering(const std::string& run, std::function<void()> then);
  void DoDeferred(const std::string& run);

  // Actions on a run (service_act.cc)
  void ActNow(const std::string& run, RunAction action, Done<Json> done);
  void SetPriorityNow(const std::string& run, int priority, const Done<Json>& done);
  void SetLabelsNow(const std::string& run, const LabelChange& change, const Done<Json>& done);
  void SetLabelsOfOver(const std::string& run, const LabelChange& change, Done<Json> done);
  void Cancel(const std::string& run, Done<Json> done);
  void CancelWaiting(QueuedRun* run, Done<Json> done);
  void Pause(const std::string& run, Done<Json> done);
  std::optional<OverQuota> TooManyPaused(const QueuedRun& run) const;
  void AnswerOver(const std::string& run, RunAction action, Done<Json> done);
  Json Announced(const std::filesystem::path& checkpoint) const;

  // Resuming a run that has ended (service_resume.cc)
  struct Resuming {
    std::vector<Done<Json>> asked;
    std::string user;      ///< whose quota it counts against; "" until that is known
    bool judging = false;  ///< its configuration waits for a judgement, or is being judged
    /// Set when it is cancelled meanwhile. Also ends the judging on another thread.
    std::shared_ptr<std::atomic<bool>> cancelled = std::make_shared<std::atomic<bool>>(false);
  };
  void Resume(const std::string& run, Done<Json> done);
  void BeginResume(const std::string& run, std::vector<Done<Json>> asked);
  void OnResumeRow(const std::string& run, const std::optional<RunRow>& row);
  void OpenAgain(const RunRow& row, std::shared_ptr<EvalConfig> config);
  void TakeUpEnded(const RunRow& row, std::shared_ptr<QueuedRun> run);
  void EndResume(const std::string& run, const Refusal& why);
  /// Whether a run in this state is over. A run whose gates are being judged is not.
  static bool IsOver(const std::string& state);
  static Error ResumeCancelled(const std::string& run);

  // Going on with the runs of the service before (service_recovery.cc)
  static void RecordSubmission(RunDirectory* directory, const Submission& submission,
                               const std::filesystem::path& state_dir);
  void AdoptRuns();
  QueuedRun Reopen(const RunRow& row) const;
  void ReopenEnded(const Submission& submission, const Json& record, QueuedRun* run) const;
  void TakeUp(const RunRow& row);
  void SayCancelled(const std::filesystem::path& folder);
  void OnReopened(QueuedRun reopened);
  void OnNotReopened(const RunRow& row, const Error& why);
  void TakeUpLater(const RunRow& row, const Error& why);
  void TakeUpAgain(const std::string& run);

  // Removing runs of which nothing was computed (service_forget.cc)
  void ForgetUnused(const std::string& user);
  void Forget(const RunRow& row);

  // Judging the gates of runs that have ended (service_judge.cc)
  using OutcomePtr = std::shared_ptr<RunOutcome>;
  struct JudgedNow {
    std::shared_ptr<std::atomic<bool>> cancelled = std::make_shared<std::atomic<bool>>(false);
    std::unique_ptr<WorkThread> thread;  ///< waits for the judgement
  };
  void JudgeSoon(int64_t number, OutcomePtr outcome);
  void JudgeNext();
  void JudgeRun(const QueuedRun& run, OutcomePtr outcome);
  void ReportOnly(const QueuedRun& run, OutcomePtr outcome);
  std::pair<std::function<void()>, WorkThread::Done> JudgementOf(const QueuedRun& run,
                                                                 OutcomePtr outcome,
                                                                 Cancelled cancelled);
  static bool HasGates(const QueuedRun& run);
  void OnJudged(int64_t number, const OutcomePtr& outcome, Judgement judgement,
                const std::optional<Error>& error);
  bool IsJudged(const QueuedRun& run) const;
  void CancelJudging(QueuedRun* run);
  void CloseUnjudged(int64_t number, const OutcomePtr& outcome);

  // working
  void StartRuns();
  void Start(QueuedRun* run);
  void OnOver(int64_t number);
  void Conclude(int64_t number);
  void OnConcluded(int64_t number, RunOutcome outcome);
  void Close(int64_t number, RunOutcome outcome, const std::optional<Judgement>& judgement);
  void Tick();
  void OnSignal(int signal);
  void CheckDrained();
  void TellDraining(int64_t now);
  void StopNow();
  void Fail(std::exception_ptr error);

  // space for staged checkpoints (service_space.cc)
  /// Looking for space reads the file system. Other runs do not wait longer than this for it.
  static constexpr int64_t kSpaceEveryMicros = 1'000'000;
  bool SpaceFor(QueuedRun* run);
  void LookForSpace(QueuedRun* run);
  void LookForSpaceAgain();
  void OnSpace(int64_t number, bool space, int64_t releases);
  bool SpaceComes(const QueuedRun& run, int64_t releases);
  std::string SpaceWaitedFor(const QueuedRun& run) const;
  void WaitFor(QueuedRun* run, const std::string& what);
  void Yield(QueuedRun* run, const std::string& to);
  static std::string LaterState(const QueuedRun& run);
  bool LostSpace(const QueuedRun& run) const;
  void QueueAgain(const std::string& run);
  bool DeferWhileYielding(const std::string& run, const std::function<void()>& then);

  // nodes of launchers (service_nodes.cc)
  void MakePools(std::vector<LauncherMaker> makers);
  void TickPools();
  NodeDemand DemandNow();
  Json LauncherResources() const;

  // showing (service_view.cc)
  Json Resource(const QueuedRun& run) const;
  std::shared_ptr<const Json> Shown(const QueuedRun& run);
  void SetState(QueuedRun* run, const std::string& state);
  void Save(const QueuedRun& run);
  void AnswerOnceOnDisk(Done<Json> done, Json answer);
  void Publish();
  void PublishNow();
  void ListStagedSoon();
  void CountFinished(const QueuedRun& run);
  std::map<std::string, double> Counters();

  // events (service_events.cc)
  void Emit(const std::string& run, const std::string& type, const Json& data);

  ServiceOptions options_;
  UniqueFd lock_;
  Loop loop_;
  std::unique_ptr<RunStore> store_;
  std::unique_ptr<DatabaseThread> database_;
  int judgements_ = 0;  ///< asked for and not yet answered; a drain waits for them
  std::map<std::string, int> registering_;  ///< by user: submissions whose rows are being written
  /// By run: calls to make once its row is written and it is in the queue (again).
  std::map<std::string, std::vector<std::function<void()>>> deferred_;
  std::unique_ptr<TaskFinisher> finisher_;
  std::unique_ptr<WorkThread> files_;  ///< writes the folders of runs
  /// Looks at checkpoints and shared memory, and gives staged checkpoints back
  std::unique_ptr<WorkThread> looks_;
  std::unique_ptr<Judging> judges_;       ///< judges submissions, watches and resumed runs
  std::unique_ptr<FairThreads> reports_;  ///< writes the reports of runs without gates
  GateTurns<OutcomePtr> unjudged_;        // runs that have ended and whose gates are judged next
  std::map<int64_t, JudgedNow> judging_;  // by run
  std::unique_ptr<Fleet> fleet_;
  JobTokens job_tokens_;
  std::unique_ptr<AgentHub> hub_;
  std::vector<std::unique_ptr<NodePool>> pools_;
  RunQueue queue_;
  Workloads workloads_;
  int signals_ = 0;
  // Set on the loop. Other threads read them and stop reading and preparing for a submission.
  std::atomic<bool> draining_{false};
  int64_t draining_told_us_ = 0;
  std::atomic<bool> stopping_{false};
  bool local_seen_ = false;                 // the local agent was there
  std::exception_ptr failure_;              // why the service cannot go on
  std::map<std::string, double> counters_;  // sums over runs that are over
  int64_t next_event_ = 1;
  struct ShownRun {
    std::shared_ptr<const Json> resource;
    std::tuple<std::string, int, bool, Json, bool, bool, std::string, RunLabels>
        what;                          ///< what it was made from, but for progress
    int64_t due_us = 0;                ///< when progress may be shown again
    std::shared_ptr<const Json> sent;  ///< the last whose progress followers were told
    int64_t sent_us = 0;
  };
  std::map<int64_t, ShownRun> shown_;  // by run
  bool publishing_ = false;            // a view is made as soon as the loop comes to it
  Json staged_ = Json::array();
  int64_t staged_listed_us_ = 0;
  bool listing_staged_ = false;
  std::string staged_problem_;  // why staged checkpoints could not be listed last time
  bool looking_for_space_ = false;
  int64_t looking_since_us_ = 0;
  int64_t space_for_ = 0;  // number of the run for which space was just found; 0: none
  int64_t releases_ = 0;   // staged checkpoints that were handed to `looks_` to be released
  // Runs that have ended and are about to be queued again
  std::map<std::string, Resuming> resuming_;
  std::map<std::string, int>
      unused_since_;                  // by user: runs ended without result since the last look
  std::set<std::string> forgetting_;  // runs that are being removed

  mutable std::mutex reader_mutex_;
  mutable std::unique_ptr<Database> reader_;  // the database for other threads
  mutable std::mutex view_mutex_;
  std::shared_ptr<const ServiceView> view_;
  mutable std::mutex events_mutex_;
  std::deque<Event> recent_;  // the newest events, which may not be in the database yet
  std::list<std::weak_ptr<std::function<void()>>> listeners_;
};

/// `seconds` since 1970 as RFC 3339 in UTC with milliseconds. Null for 0 and beyond the year 9999.
Json Rfc3339(double seconds);
/// A run as the database has it, for a person who asks. If the row is damaged, the fields that can
/// be read.
Json StoredResource(const RunRow& row);

}  // namespace evald
