#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/file.h"
#include "base/hash.h"
#include "orchestrator/run/evaluation.h"
#include "orchestrator/state/prior_store.h"

// From prepared tasks and a loaded engine to work that can be leased.
namespace evald {
namespace {

constexpr int64_t kJobsMax = int64_t{1} << 30;  // where the numbers of jobs begin again

// Whether requests that share a prefix compute it once on a device, so that another trial costs it again. Of servers
// it is not known, and with prompts' log-probabilities they do not.
bool KeepsPrefixes(const Json& engine) { return engine.value("name", "") == "native"; }

}  // namespace

void Evaluation::OnPrepared(Suite suite) {
  suite_ = std::move(suite);
  Json prepared = Json::object();
  std::vector<MachineTask> tasks;
  for (const SuiteTask& task : suite_->tasks) {
    task_index_[task.definition.name] = tasks.size();
    MachineTask& of = tasks.emplace_back();
    of.name = task.definition.name;
    of.documents = task.documents;
    of.slow_scoring = task.definition.unsafe_code;
    of.requests_per_document = static_cast<double>(task.requests) / static_cast<double>(std::max<int64_t>(1, task.documents));
    prepared[task.definition.name] = task.prepared.filename().string();
    for (const char* kind : {"generations", "scores"}) {
      MakeDirectories(directory_.path() / kind / task.definition.name);
    }
  }
  const Json before = directory_.record().value("prepared", Json());
  if (!before.is_null() && before != prepared) {
    Fail(ErrorKind::kUsage, fmt::format("{}: tasks or data have changed since this run was begun; "
                                        "start a new run", directory_.path().string()));
    return;
  }
  directory_.Update({{"prepared", prepared}});
  FailPoint("run.prepared");
  machine_.SetTasks(std::move(tasks));
  MaybePlan();
}

// Planning waits for the tasks and for what the engine says of itself.
void Evaluation::MaybePlan() {
  if (planning_ || ending_ || !suite_ || engine_info_.is_null() || !EngineServesTasks() ||
      !TokenizerIsTheStagedOne()) {
    return;
  }
  planning_ = true;
  auto recovery = std::make_shared<Recovery>();
  auto known = std::make_shared<std::vector<TaskCost>>();
  auto failure = std::make_shared<std::optional<Failure>>();
  support_.database->Post(
      [this, self = shared_from_this(), recovery, known, failure](RunStore& store) {
        try {
          *recovery = RecoverRun(&store, id(), directory_.path(), *suite_);
          *known = prior_store::All(store.database());
        } catch (const Error& e) {
          *failure = Failure{e.kind(), e.what()};
        }
      },
      [this, self = shared_from_this(), recovery, known, failure] {
        if (ending_) return;
        if (*failure) return Fail((*failure)->kind, (*failure)->text);
        try {
          OnRecovered(std::move(*recovery), *known);
        } catch (const Error& e) {  // the staged checkpoint cannot be read any more, say
          Fail(e.kind(), e.what());
        }
      });
}

// Preparation reads the checkpoint's own folder while it is being staged: somebody may have written
// there between the two.
bool Evaluation::TokenizerIsTheStagedOne() {
  if (!staged_ || suite_->tokenizer_hash.empty()) return true;
  if (HashHex(ReadFile(staged_->directory() / "tokenizer.json")) == suite_->tokenizer_hash) return true;
  Fail(ErrorKind::kInput, fmt::format("{}: tokenizer.json changed while the checkpoint was being staged",
                                      config_.checkpoint.string()));
  return false;
}

bool Evaluation::EngineServesTasks() {
  for (const RequestKind kind : {RequestKind::kGenerateUntil, RequestKind::kLoglikelihood,
                                 RequestKind::kLoglikelihoodRolling}) {
    if (!NeedsKind(kind)) continue;
    const Json kinds = engine_info_.value("kinds", Json::array());
    if (std::find(kinds.begin(), kinds.end(), Json(ToString(kind))) != kinds.end()) continue;
    const std::string why = engine_info_.value("refused", "");
    Fail(ErrorKind::kUsage,
         fmt::format("the tasks need {} requests, which engine '{}' does not serve{}", ToString(kind),
                     config_.engine.name, why.empty() ? "" : ": " + why));
    return false;
  }
  return true;
}

// What costs are measured and compared at. The checkpoints of a training run share their config.json.
CostPlace Evaluation::PlaceOfCosts() const {
  CostPlace place;
  place.device = engine_info_.value("device", "");
  if (staged_) {
    place.model = HashHex(ReadFile(staged_->directory() / "config.json"));
    place.model_bytes = static_cast<double>(staged_->report().bytes);
  } else {
    place.model = HashHex(config_.engine.settings.dump());
  }
  return place;
}

void Evaluation::ExpectCosts(const std::vector<TaskCost>& known) {
  place_ = PlaceOfCosts();
  std::vector<Prior> priors;
  for (size_t t = 0; t < suite_->tasks.size(); ++t) {
    TaskFacts facts = FactsOf(suite_->tasks[t]);
    if (!KeepsPrefixes(engine_info_)) facts.prefix_tokens = 0;
    priors.push_back(EstimateTask(facts, place_, engine_info_.value("concurrency", 1), known));
    machine_.Expect(t, priors.back());
  }
  costs_.Expect(std::move(priors));
}

void Evaluation::OnRecovered(Recovery recovery, const std::vector<TaskCost>& known) {
  record_ = std::move(recovery.record);
  earlier_ = WorkOf(record_);
  for (const auto& [task, documents] : record_.generated) {
    for (const auto& [document, file] : documents) machine_.AdoptGenerations(task_index_.at(task), document);
  }
  for (const auto& [task, documents] : record_.scored) {
    for (const auto& [document, file] : documents) machine_.AdoptScores(task_index_.at(task), document);
  }
  for (size_t t = 0; t < recovery.tasks.size(); ++t) {
    for (const std::string& file : recovery.tasks[t].salvage) machine_.AddSalvage(t, file);
  }
  ExpectCosts(known);
  PlanSetup setup;
  setup.devices = std::max(1, devices_);
  setup.places = engine_info_.value("concurrency", 1);
  setup.score_slots = std::max(1, config_.metrics.processes);
  setup.first_trial = recovery.first_trial;
  // A job takes longer than a millisecond: numbers of this life are above those of the one before.
  setup.first_job = MonotonicMicros() / 1000 % kJobsMax;
  machine_.Plan(setup);
  // What is generated but not scored yet becomes jobs, file by file.
  for (const auto& [task, documents] : record_.generated) {
    std::map<size_t, std::vector<int64_t>> unscored;
    for (const auto& [document, file] : documents) {
      if (record_.scored[task].count(document) == 0) unscored[file].push_back(document);
    }
    for (const auto& [file, list] : unscored) {
      const CommittedFile& source = record_.generations[file];
      backlog_bytes_ += GeneratedBytes(task, list);
      machine_.GenerationsCommitted(task_index_.at(task), list, source.path, source.trial, source.attempt);
    }
  }
  FailPoint("run.planned");
  planned_ = true;
  planned_at_us_ = MonotonicMicros();
  for (size_t t = 0; t < machine_.tasks().size(); ++t) {
    generated_at_plan_ += machine_.generated(t);
    if (machine_.task_finished(t)) FinishTask(t);
  }
  hooks_.work();
  CheckEnd();
}

bool Evaluation::NeedsKind(RequestKind kind) const {
  for (const SuiteTask& task : suite_->tasks) {
    const std::string& type = task.definition.output_type;
    const RequestKind needed = type == "generate_until"          ? RequestKind::kGenerateUntil
                               : type == "loglikelihood_rolling" ? RequestKind::kLoglikelihoodRolling
                                                                 : RequestKind::kLoglikelihood;
    if (needed == kind) return true;
  }
  return false;
}

}  // namespace evald
