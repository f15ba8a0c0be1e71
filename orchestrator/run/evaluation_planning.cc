#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/fail_point.h"
#include "metrics/aggregate.h"
#include "orchestrator/run/evaluation_scheduling.h"
#include "orchestrator/state/prior_store.h"

// Planning: from prepared tasks and a loaded engine to work that can be leased.
namespace evald {
namespace {

// About ten minutes of one processor.
constexpr double kBootstrapDrawsMax = 1e11;

}  // namespace

// Refuses a standard error that would take hours, before anything is computed.
bool Evaluation::BootstrapsInTime() {
  for (const SuiteTask& task : suite_->tasks) {
    const double each = BootstrapDraws(task.definition, task.documents, 1);
    if (each * config_.bootstrap_iters <= kBootstrapDrawsMax) continue;
    Fail(ErrorKind::kUsage, fmt::format("task '{}': the standard errors of its metrics are "
                                        "bootstrapped: each of {} iterations draws {:.0f} "
                                        "values, in all {:.2g}, expected at most {:.2g}; set "
                                        "'bootstrap_iters' to at most {:.0f}, or to 0 "
                                        "for no standard errors, or set a limit",
                                        task.definition.name, config_.bootstrap_iters, each,
                                        each * config_.bootstrap_iters, kBootstrapDrawsMax,
                                        std::floor(kBootstrapDrawsMax / each)));
    return false;
  }
  return true;
}

void Evaluation::OnPrepared(std::shared_ptr<const Suite> suite) {
  suite_ = std::move(suite);
  Json prepared = Json::object();
  std::vector<MachineTask> tasks;
  std::vector<std::string> names;
  for (const SuiteTask& task : suite_->tasks) {
    task_index_[task.definition.name] = tasks.size();
    MachineTask& of = tasks.emplace_back();
    of.name = task.definition.name;
    of.documents = task.documents;
    of.slow_scoring = task.definition.unsafe_code;
    of.judged = UsesJudge(task.definition);
    of.command = task.definition.command.has_value();
    of.requests_per_document = static_cast<double>(task.requests) /
                               static_cast<double>(std::max<int64_t>(1, task.documents));
    prepared[task.definition.name] = task.prepared.filename().string();
    names.push_back(task.definition.name);
  }
  const Json before = json_.record().value("prepared", Json());
  if (!before.is_null() && before != prepared) {
    Fail(ErrorKind::kUsage, fmt::format("{}: tasks or data have changed since this run was begun; "
                                        "start a new run",
                                        path_.string()));
    return;
  }
  if (!BootstrapsInTime()) return;
  OffLoop([run = path_, names = std::move(names)] { MakeTaskFolders(run, names); }, [] {});
  Record({{"prepared", prepared}}, [] { FailPoint("run.prepared"); });
  machine_.SetTasks(std::move(tasks));
  MaybePlan();
}

// Plans once the tasks are prepared and the engine is known.
void Evaluation::MaybePlan() {
  if (planning_ || ending_ || !suite_ || engine_info_.is_null() || !EngineServesTasks()) return;
  planning_ = true;
  auto recovery = std::make_shared<Recovery>();
  auto known = std::make_shared<std::vector<TaskCost>>();
  auto failure = std::make_shared<std::optional<Failure>>();
  support_.database->Post(
      [run = id_, folder = path_, suite = suite_, recovery, known, failure](RunStore& store) {
        try {
          *recovery = RecoverRun(&store, run, folder, *suite);
          *known = prior_store::All(store.database());
        } catch (const Error& e) {
          *failure = Failure{e.kind(), e.what()};
          // The fault is the folder's, not the database's
        } catch (const std::filesystem::filesystem_error& e) {
          *failure = Failure{ErrorKind::kInfrastructure, e.what()};
        }
      },
      Guarded([this, recovery, known, failure] {
        if (ending_) return;
        if (*failure) return Fail((*failure)->kind, (*failure)->text);
        MakePlan(std::move(*recovery), std::move(*known));
      }));
}

// Plans on the files thread. Nothing is leased before the run's folders are made and run.json says
// with which checkpoint, tasks and engine the run was begun.
void Evaluation::MakePlan(Recovery recovery, std::vector<TaskCost> known) {
  auto input = std::make_shared<PlanInput>();
  input->config = config_;
  input->suite = suite_;
  input->tasks = machine_.tasks();
  input->engine = engine_info_;
  if (staged_)
    input->checkpoint = {staged_->directory(), static_cast<double>(staged_->report().bytes)};
  for (size_t t = 0; t < recovery.tasks.size(); ++t) {
    if (!recovery.tasks[t].salvage.empty()) left_parts_.insert(suite_->tasks[t].definition.name);
  }
  input->recovery = std::move(recovery);
  input->known = std::move(known);
  input->devices = devices_;
  auto plan = std::make_shared<std::optional<RunPlan>>();
  OffLoop([input, plan] { plan->emplace(PlanRun(std::move(*input))); },
          [this, plan] {
            const Json generation = (*plan)->generation.in_force;
            if (ending_ || !GenerationIsAsBefore(generation)) return;
            Record({{"generation", generation}}, [this, plan] {
              if (!ending_) OnPlanned(std::move(**plan));
            });
          });
}

void Evaluation::OnPlanned(RunPlan plan) {
  machine_ = std::move(plan.machine);
  machine_.SetDevices(devices_);
  record_ = std::move(plan.record);
  earlier_ = plan.earlier;
  place_ = std::move(plan.place);
  generation_ = std::move(plan.generation.in_force);
  costs_.Expect(std::move(plan.priors));
  backlog_bytes_ = plan.backlog_bytes;
  generated_at_plan_ = plan.generated;
  FailPoint("run.planned");
  planned_ = true;
  planned_at_us_ = engine_since_us_ = engine_idle_us_ = MonotonicMicros();
  for (size_t t = 0; t < machine_.tasks().size(); ++t) {
    if (!machine_.task_finished(t)) continue;
    OnLoop([this, t] {  // one turn each: there may be many
      if (!ending_) FinishTask(t);
    });
  }
  hooks_.changed();
  CheckEnd();
}

// Whether the generation settings are those that the run was begun with. A checkpoint that is not
// staged may have changed since then, and its settings with it.
bool Evaluation::GenerationIsAsBefore(const Json& now) {
  const Json before = json_.record().value("generation", Json());
  if (before.is_null() || before == now) return true;
  Fail(
      ErrorKind::kUsage,
      fmt::format("{}: generation settings have changed since this run was begun: {} then, {} now; "
                  "start a new run",
                  path_.string(), before.dump(), now.dump()));
  return false;
}

bool Evaluation::EngineServesTasks() {
  for (const RequestKind kind : {RequestKind::kGenerateUntil, RequestKind::kLoglikelihood,
                                 RequestKind::kLoglikelihoodRolling}) {
    if (!NeedsKind(kind)) continue;
    const Json kinds = engine_info_.value("kinds", Json::array());
    if (std::find(kinds.begin(), kinds.end(), Json(ToString(kind))) != kinds.end()) continue;
    const std::string why = engine_info_.value("refused", "");
    const HostDoubts::Refusal refusal{
        "engine", ErrorKind::kUsage,
        fmt::format("the tasks need {} requests, which engine '{}' does not serve{}",
                    ToString(kind), config_.engine.name, why.empty() ? "" : ": " + why)};
    if (Believed(engine_by_, refusal)) {
      CarryOut(refusal);
    } else {  // another host's engine may serve them
      engine_info_ = Json();
      Record({{"engine", nullptr}}, [] {});
      hooks_.changed();
    }
    return false;
  }
  return true;
}

bool Evaluation::NeedsKind(RequestKind kind) const {
  for (const SuiteTask& task : suite_->tasks) {
    const std::string& type = task.definition.output_type;
    const RequestKind needed = type == "generate_until" ? RequestKind::kGenerateUntil
                               : type == "loglikelihood_rolling"
                                   ? RequestKind::kLoglikelihoodRolling
                                   : RequestKind::kLoglikelihood;
    if (needed == kind) return true;
  }
  return false;
}

}  // namespace evald
