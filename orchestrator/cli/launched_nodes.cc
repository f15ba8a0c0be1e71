#include "orchestrator/cli/launched_nodes.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "base/clock.h"
#include "base/last_lines.h"
#include "base/log.h"
#include "base/random_id.h"
#include "base/text.h"
#include "metrics/sandbox_options.h"
#include "orchestrator/cli/launchers.h"
#include "orchestrator/launch/step.h"
#include "protocol/agent_join.h"

namespace evald::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kLinger_s = 60;  // agents of a run that was killed end then
constexpr double kStopPatience_s = 90;
constexpr double kHurriedPatience_s = 2;              // the same while a person waits
constexpr int64_t kLeavePatienceMicros = 10'000'000;  // for agents that were told to end
constexpr std::chrono::milliseconds kLook{50};
constexpr int64_t kStepGraceMicros = 20'000'000;  // for agents to end by themselves

// The arguments that give agents what an eval.yaml says of workers and metric processes.
std::vector<std::string> AgentArgumentsOf(const EvalConfig& config) {
  std::vector<std::string> arguments = {"--devices", Join(config.workers.devices, ","),
                                        "--log-level", "info"};
  const std::vector<std::string> code = CodeOptions(config.metrics, config.task_code);
  arguments.insert(arguments.end(), code.begin(), code.end());
  const auto add = [&](bool wanted, const char* option, int value) {
    if (wanted) arguments.insert(arguments.end(), {option, std::to_string(value)});
  };
  add(config.workers.devices_per_worker > 1, "--devices-per-worker",
      config.workers.devices_per_worker);
  add(config.workers.threads_given, "--threads", config.workers.threads);
  add(config.metrics.processes_given, "--metric-processes", config.metrics.processes);
  return arguments;
}

// A door for the agents of one run.
std::unique_ptr<AgentDoor> OpenRunDoor(const RunNodes::Support& support) {
  AgentDoorOptions options;
  options.folder = support.folder / kDoorFolder;
  options.job_tokens = support.tokens;
  options.loop = support.loop;
  options.hub = support.hub;
  return std::make_unique<AgentDoor>(std::move(options));
}

// Calls `then` once `over` is true, or at the time `until`, of MonotonicMicros.
void WhenOver(Loop* loop, int64_t until, const std::function<bool()>& over,
              const std::function<void()>& then) {
  if (over() || MonotonicMicros() >= until) return then();
  loop->After(kLook, [=] { WhenOver(loop, until, over, then); });
}

// Ends the jobs that an earlier process of this run has left, so that their nodes are free for the
// new ones.
void EndLeftJobs(const LauncherConfig& config, const std::string& prefix) {
  try {
    const std::unique_ptr<Launcher> launcher = MakeLauncher(config, prefix);
    for (const ListedJob& left : launcher->List()) {
      if (left.state == ListedJob::State::kOver) continue;
      log::Warn("job {} ('{}') of an earlier process of this run ends", left.job, left.name);
      NodeJob job;
      job.job = left.job;
      job.name = left.name;
      launcher->Stop(job);
    }
  } catch (const Error& e) {  // their agents end by themselves
    log::Warn("{}; jobs of an earlier process of this run may still run", e.what());
  }
}

class LaunchedNodes : public RunNodes {
 public:
  explicit LaunchedNodes(LauncherConfig config) : config_(std::move(config)) {}

  void Start(const Support& support) override {
    fleet_ = support.fleet;
    loop_ = support.loop;
    hub_ = support.hub;
    const std::string prefix = fmt::format("evald-{}-", support.run);
    if (fs::exists(support.folder / kDoorFolder)) EndLeftJobs(config_, prefix);
    door_ = OpenRunDoor(support);
    NodePoolOptions options = PoolOptionsOf(config_, *door_, kLinger_s);
    options.limits.prefix = prefix + RandomId(1) + "-";  // no job is called as an earlier one
    options.launcher = MakeLauncher(config_, options.limits.prefix);
    pool_ = std::make_unique<NodePool>(
        std::move(options),
        NodePool::Support{support.loop, support.fleet, support.hub, support.tokens},
        NodePool::Records{}, NodePool::Earlier{});
  }

  void Tick() override { pool_->Tick(fleet_->Demand()); }

  std::string WaitsFor() const override { return Join(pool_->Awaited(), "; "); }

  bool MoreMayCome() const override { return pool_->MoreMayCome(); }

  std::string Hopeless() const override { return pool_->Hopeless(); }

  void Hurry() override { pool_->Hurry(kHurriedPatience_s); }

  void Close() override {
    if (pool_) pool_->Abandon();
    pool_.reset();
    door_.reset();
  }

  void Stop(std::function<void()> done) override {
    hub_->StopLaunched();  // what they hold is not needed any more
    pool_->StopAll(kStopPatience_s, [this, done = std::move(done)] {
      // The door stays open until the agents have gone: they give back what they have staged.
      WhenOver(
          loop_, MonotonicMicros() + kLeavePatienceMicros,
          [this] { return !hub_->LaunchedConnected(); },
          [this, done] {
            door_->Stop();
            done();
          });
    });
  }

 private:
  LauncherConfig config_;
  Loop* loop_ = nullptr;
  AgentHub* hub_ = nullptr;
  Fleet* fleet_ = nullptr;
  std::unique_ptr<AgentDoor> door_;
  std::unique_ptr<NodePool> pool_;
};

class AllocatedNodes : public RunNodes {
 public:
  AllocatedNodes(Allocation allocation, fs::path evald, std::vector<std::string> agent)
      : allocation_(std::move(allocation)), evald_(std::move(evald)), agent_(std::move(agent)) {}

  void Start(const Support& support) override {
    loop_ = support.loop;
    door_ = OpenRunDoor(support);
    log_ = support.folder / "logs" / "agents.log";
    fleet_ = support.fleet;
    const std::string host = HostOf(allocation_);
    const std::string join =
        protocol::EncodeJoin({door_->url(), support.tokens->Make(host, 0, allocation_.nodes),
                              door_->authority(), host, kLinger_s});
    step_.emplace(StepOf(allocation_, evald_, agent_, log_), join);
  }

  void Tick() override {
    if (!step_ || ended_) return;
    if (const auto how = step_->Ended()) {
      ended_ = fmt::format("srun has ended ({}){}{}", *how, LastWords().empty() ? "" : ": ",
                           LastWords());
      log::Warn("{}", *ended_);
    }
  }

  std::string WaitsFor() const override {
    return ended_ ? *ended_
                  : fmt::format("the agents on {} node{} of job {}", allocation_.nodes,
                                allocation_.nodes == 1 ? "" : "s", allocation_.job);
  }

  // The agents of a job of several nodes are called by their nodes' numbers.
  bool MoreMayCome() const override {
    const std::string host = HostOf(allocation_);
    for (int node = 0; node < allocation_.nodes && !ended_; ++node) {
      const std::string name = allocation_.nodes == 1 ? host : fmt::format("{}-{}", host, node);
      if (fleet_->HostState(name).empty()) return true;
    }
    return false;
  }

  std::string Hopeless() const override { return ended_.value_or(""); }

  void Hurry() override {}

  void Close() override {
    step_.reset();
    door_.reset();
  }

  void Stop(std::function<void()> done) override {
    step_->Signal(SIGTERM);
    WhenOver(
        loop_, MonotonicMicros() + kStepGraceMicros, [this] { return step_->Ended().has_value(); },
        [this, done = std::move(done)] {
          step_.reset();
          door_->Stop();
          done();
        });
  }

 private:
  static std::string HostOf(const Allocation& allocation) { return "slurm-" + allocation.job; }

  std::string LastWords() const {
    const std::vector<std::string> lines = LastLines(log_, 1);
    return lines.empty() ? "" : PrintableLine(Shortened(lines[0], 300));
  }

  Allocation allocation_;
  fs::path evald_;
  std::vector<std::string> agent_;
  fs::path log_;
  Loop* loop_ = nullptr;
  Fleet* fleet_ = nullptr;
  std::unique_ptr<AgentDoor> door_;
  std::optional<Step> step_;
  std::optional<std::string> ended_;
};

}  // namespace

LauncherConfig WithAgentArguments(const EvalConfig& config) {
  LauncherConfig launcher = *config.launcher;
  GiveOptions(AgentArgumentsOf(config), &launcher);
  return launcher;
}

std::unique_ptr<RunNodes> NodesOfLauncher(const EvalConfig& config) {
  return std::make_unique<LaunchedNodes>(WithAgentArguments(config));
}

std::unique_ptr<RunNodes> NodesOfAllocation(const EvalConfig& config, const Allocation& allocation,
                                            const fs::path& evald) {
  return std::make_unique<AllocatedNodes>(allocation, evald, AgentArgumentsOf(config));
}

}  // namespace evald::cli
