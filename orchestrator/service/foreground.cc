#include "orchestrator/service/foreground.h"

#include <fmt/format.h>

#include <csignal>

#include "base/fail_point.h"
#include "base/log.h"
#include "base/print.h"
#include "base/socket_directory.h"
#include "base/text.h"
#include "checkpoint/layout.h"
#include "metrics/sandbox_options.h"
#include "orchestrator/config/judge_section.h"
#include "orchestrator/config/sections.h"
#include "orchestrator/config/worker_devices.h"
#include "orchestrator/fleet/local_host.h"
#include "orchestrator/report/progress.h"
#include "orchestrator/run/run_ending.h"
#include "orchestrator/service/fleet.h"
#include "orchestrator/service/process_id.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::milliseconds kForegroundTick{200};

FleetOptions MakeFleetOptions(const RunOptions& options, const RunDirectory& directory) {
  FleetOptions fleet;
  fleet.log_dir = directory.path() / "logs";
  fleet.log_level = options.log_level;
  fleet.worker_restarts_max = 2 * options.config.workers.max_attempts;
  fleet.metric_restarts_max = 2 * options.config.metrics.max_attempts;
  fleet.stall_timeout_s = options.config.workers.stall_timeout_s;
  fleet.hosts_may_come = options.nodes != nullptr;
  return fleet;
}

LocalHostOptions MakeHostOptions(const RunOptions& options, const fs::path& sockets,
                                 const RunDirectory& directory) {
  return {sockets,
          options.binaries,
          directory.path() / "logs",
          {"--sandbox", ToJson(options.config.metrics.sandbox).dump(), "--task-code",
           ToJson(options.config.task_code).dump(), "--judge-cache",
           (options.config.cache_dir / kJudgeCache).string()}};
}

std::filesystem::path StateOf(const EvalConfig& config) {
  MakeFolderOf(config.file, "state_dir", config.state_dir);
  return config.state_dir;
}

HostInfo MakeHostInfo(const EvalConfig& config) {
  return {kLocalHost, config.workers.devices, 0, config.metrics.processes};
}

// One evaluation, its processes, and the display of its progress.
class ForegroundRun {
 public:
  ForegroundRun(const RunOptions& options, RunDirectory directory)
      : store_(StateOf(options.config)),
        quiet_(options.quiet),
        display_(options.quiet),
        fleet_(&loop_, MakeFleetOptions(options, directory)),
        host_(&loop_, MakeHostOptions(options, socket_directory_.path(), directory),
              fleet_.EventsOf(kLocalHost)),
        stall_timeout_s_(options.config.workers.stall_timeout_s) {
    fleet_.AddHost(&host_, MakeHostInfo(options.config));
    fleet_.HostReady(kLocalHost, {}, {});
    const int64_t number = store_.OpenRun(directory.id(), directory.path());
    FailPoint("run.registered");
    database_ = std::make_unique<DatabaseThread>(&store_, &loop_, [this](std::exception_ptr error) {
      try {
        std::rethrow_exception(error);
      } catch (const std::exception& e) {
        evaluation_->Fail(ErrorKind::kInfrastructure, e.what());
      }
    });
    finisher_ = std::make_unique<TaskFinisher>(&loop_);
    if (options.nodes != nullptr) TakeAgents(options.nodes, directory);
    files_ = std::make_unique<WorkThread>("files", &loop_, WorkThread::AtEnd::kFinish);
    evaluation_ = std::make_shared<Evaluation>(
        options.config, std::move(directory), number, options.config.workers.count,
        Evaluation::Support{&loop_, database_.get(), finisher_.get(), files_.get(),
                            options.binaries},
        Evaluation::Hooks{
            [this, number] { fleet_.RunChanged(number); }, [this] { Stop(); },
            [](const std::string&, const Json&) {},
            [this](const std::string& process) { return fleet_.WitnessOf(process); }});
  }

  RunOutcome Run() {
    loop_.OnSignals([this](int signal) { OnSignal(signal); });
    fleet_.Add(evaluation_, 0, "");
    evaluation_->Start();
    Tick();
    loop_.Run();
    nodes_.reset();
    ProgressSnapshot last = evaluation_->Progress();
    if (!evaluation_->complete()) last.remaining_s = -1;  // nothing goes on
    display_.Finish(last);
    finisher_.reset();
    files_.reset();
    RunOutcome outcome = EndRun(evaluation_->TakeEnding());
    database_->Post([id = evaluation_->id(), status = outcome.status](RunStore& store) {
      store.SetState(id, status == ExitStatus::kDone ? "done" : "incomplete");
    });
    database_.reset();
    fleet_.Remove(evaluation_->number());
    return outcome;
  }

  bool planned() const { return evaluation_->planned(); }

 private:
  // Agents of nodes may come and go from now on.
  void TakeAgents(RunNodes* nodes, const RunDirectory& directory) {
    hub_ =
        std::make_unique<AgentHub>(&loop_, &fleet_, LocalAgent{{}, {}, socket_directory_.path()});
    hub_->Guard(&tokens_);
    hub_->Serve();
    finisher_->SetSettled(
        [files = hub_->shared_files()](const fs::path& file) { files->AwaitNamed(file); });
    nodes_.reset(nodes);
    nodes_->Start({&loop_, &fleet_, hub_.get(), &tokens_, directory.id(), directory.path()});
  }

  void Stop() {
    const auto end = [this] { fleet_.StopAll([this] { loop_.Stop(); }); };
    if (nodes_ == nullptr) return end();
    nodes_->Stop(end);
  }

  void Tick() {
    if (nodes_ != nullptr) {
      nodes_->Tick();
      fleet_.Awaits(nodes_->WaitsFor(), nodes_->MoreMayCome());
      const std::string why = nodes_->Hopeless();
      if (!why.empty() && fleet_.device_count() == 0 && !evaluation_->ending())
        evaluation_->Fail(ErrorKind::kInfrastructure, why);
    }
    fleet_.Tick();
    ShowProgress();
    loop_.After(kForegroundTick, [this] { Tick(); });
  }

  void ShowProgress() {
    ProgressSnapshot progress = evaluation_->Progress();
    if (signals_ > 0) {
      progress.notice = Stopping(progress);
      progress.notice_s = countdown_.Left(progress.notice_s, progress.elapsed_s);
    }
    display_.Show(progress);
  }

  void OnSignal(int signal) {
    if (nodes_ != nullptr) nodes_->Hurry();
    if (++signals_ > 2 && nodes_ != nullptr) return loop_.Stop();
    if (signals_ > 1 || !evaluation_->planned()) {
      evaluation_->Fail(ErrorKind::kInfrastructure,
                        fmt::format("stopped by {}", signal == SIGINT ? "Ctrl-C" : "a signal"));
    } else {
      evaluation_->Drain();
    }
    ShowProgress();
    if (quiet_) Print(stderr, "evald: stopping: {}\n", Stopping(evaluation_->Progress()));
  }

  std::string Stopping(const ProgressSnapshot& progress) const {
    if (evaluation_->ending())
      return evaluation_->over() ? "processes are ended" : "what is staged or prepared is given up";
    const std::vector<std::string> holders = evaluation_->Holders();
    if (holders.empty()) return "what is done is being written; Ctrl-C again stops at once";
    return fmt::format(
        "waiting for {} leased documents and scores of {}, which have at most {} if "
        "nothing comes; Ctrl-C again stops at once",
        progress.leased_documents, Join(holders, ", "), HumanSeconds(stall_timeout_s_));
  }

  Loop loop_;
  RunStore store_;
  bool quiet_;
  ProgressDisplay display_;
  std::unique_ptr<DatabaseThread> database_;
  std::unique_ptr<TaskFinisher> finisher_;
  std::unique_ptr<WorkThread> files_;
  std::shared_ptr<Evaluation> evaluation_;
  Fleet fleet_;
  SocketDirectory socket_directory_;
  LocalHost host_;
  JobTokens tokens_;
  std::unique_ptr<AgentHub> hub_;  // null without nodes
  struct Closing {
    void operator()(RunNodes* nodes) const { nodes->Close(); }
  };
  std::unique_ptr<RunNodes, Closing> nodes_;  // the caller's; null without nodes
  const double stall_timeout_s_;
  Countdown countdown_;
  int signals_ = 0;
};

}  // namespace

RunOutcome RunEvaluation(const RunOptions& asked) {
  RunOptions options = asked;
  if (options.nodes == nullptr) {
    ChooseWorkers(&options.config.workers, options.config.engine.name, options.binaries);
  } else {
    options.config.workers.devices.clear();  // this host scores
  }
  RunDirectory directory = options.resume ? RunDirectory::Resume(options.config, options.resume_run)
                                          : RunDirectory::Create(options.config);
  const fs::path path = directory.path();
  ForegroundRun run(options, std::move(directory));
  RunOutcome outcome = run.Run();
  const bool refused = outcome.status == ExitStatus::kUsage && !options.resume && !run.planned();
  if (refused) {  // nothing was begun that could be resumed
    std::error_code ignored;
    fs::remove_all(path, ignored);
    outcome.directory.clear();
  }
  return outcome;
}

}  // namespace evald
