#include "orchestrator/run/run_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "evald/error.h"
#include "orchestrator/run/run_costs.h"

namespace evald {
namespace {

// Job numbers begin again here
constexpr int64_t kJobsMax = int64_t{1} << 30;
constexpr double kMetricSilenceMin = 10, kMetricSilenceMax = 120;  // seconds

int64_t Micros(double seconds) { return static_cast<int64_t>(seconds * 1e6); }

// Throws Error if the tokenizer has changed. Preparation reads the checkpoint's own folder while it
// is being staged, so the folder may have been written in between.
void CheckTokenizer(const PlanInput& input) {
  const std::string& hash = input.suite->tokenizer_hash;
  if (!input.checkpoint || hash.empty()) return;
  if (HashHex(ReadFile(input.checkpoint->folder / "tokenizer.json")) == hash) return;
  throw Error(ErrorKind::kInput,
              fmt::format("{}: tokenizer.json changed while the checkpoint was being staged",
                          input.config.checkpoint.string()));
}

// The place at which costs are measured and compared. The checkpoints of a training run share their
// config.json.
CostPlace PlaceOf(const PlanInput& input) {
  CostPlace place;
  place.device = input.engine.value("device", "");
  if (input.checkpoint) {
    place.model = HashHex(ReadFile(input.checkpoint->folder / "config.json"));
    place.model_bytes = input.checkpoint->bytes;
  } else {
    place.model = HashHex(input.config.engine.settings.dump());
  }
  return place;
}

void ExpectCosts(const PlanInput& input, RunPlan* plan) {
  for (size_t t = 0; t < input.suite->tasks.size(); ++t) {
    TaskFacts facts = FactsOf(input.suite->tasks[t]);
    if (!input.config.engine.kind().keeps_prefixes) facts.prefix_tokens = 0;
    plan->priors.push_back(
        EstimateTask(facts, plan->place, input.engine.value("concurrency", 1), input.known));
    plan->machine.Expect(t, plan->priors.back());
  }
}

std::map<std::string, size_t> IndexOf(const std::vector<MachineTask>& tasks) {
  std::map<std::string, size_t> index;
  for (size_t t = 0; t < tasks.size(); ++t) index[tasks[t].name] = t;
  return index;
}

void TakeOver(const PlanInput& input, const std::map<std::string, size_t>& index, RunPlan* plan) {
  for (const auto& [task, documents] : plan->record.generated) {
    for (const auto& [document, file] : documents)
      plan->machine.AdoptGenerations(index.at(task), document);
  }
  for (const auto& [task, documents] : plan->record.scored) {
    for (const auto& [document, file] : documents)
      plan->machine.AdoptScores(index.at(task), document);
  }
  for (size_t t = 0; t < input.recovery.tasks.size(); ++t) {
    for (const std::string& file : input.recovery.tasks[t].salvage)
      plan->machine.AddSalvage(t, file);
  }
}

// Makes jobs of documents that are generated and not scored, file by file.
void QueueScoring(const std::map<std::string, size_t>& index, RunPlan* plan) {
  for (const auto& [task, documents] : plan->record.generated) {
    std::map<size_t, std::vector<int64_t>> unscored;
    const auto& scored = plan->record.scored[task];
    for (const auto& [document, file] : documents) {
      if (scored.count(document) == 0) unscored[file].push_back(document);
    }
    for (const auto& [file, list] : unscored) {
      const CommittedFile& source = plan->record.generations[file];
      plan->backlog_bytes += GeneratedBytes(plan->record, task, list);
      plan->machine.GenerationsCommitted(index.at(task), list, source.path, source.trial,
                                         source.attempt);
    }
  }
}

void RefuseImpossible(const std::map<std::string, size_t>& index, RunPlan* plan) {
  for (const auto& [task, why] : plan->generation.impossible) {
    log::Warn("task {}: {}", task, why);
    plan->machine.RefuseTask(index.at(task), why);
  }
}

}  // namespace

RunMachine MakeMachine(const EvalConfig& config) {
  const double metric_silence =
      std::clamp(config.workers.heartbeat_timeout_s, kMetricSilenceMin, kMetricSilenceMax);
  return RunMachine({config.workers.max_attempts, Micros(config.workers.heartbeat_timeout_s)},
                    {config.metrics.max_attempts, Micros(metric_silence)});
}

RunPlan PlanRun(PlanInput input) {
  CheckTokenizer(input);
  const std::map<std::string, size_t> index = IndexOf(input.tasks);
  RunPlan plan{MakeMachine(input.config),
               std::move(input.recovery.record),
               PlaceOf(input),
               {},
               {},
               {},
               0,
               0};
  const ReadFolder checkpoint = input.checkpoint
                                    ? ReadFolder(input.checkpoint->folder)
                                    : ReadFolder(input.config.checkpoint, input.config.roots);
  plan.generation = PlanGeneration(input.config, *input.suite, input.engine, checkpoint);
  plan.earlier = WorkOf(plan.record);
  plan.machine.SetTasks(input.tasks);
  TakeOver(input, index, &plan);
  ExpectCosts(input, &plan);
  PlanSetup setup;
  setup.devices = std::max(1, input.devices);
  setup.places = input.engine.value("concurrency", 1);
  setup.score_slots = std::max(1, input.config.metrics.processes);
  setup.first_trial = input.recovery.first_trial;
  // A job takes longer than a millisecond, so numbers of this life are above those of the last one.
  setup.first_job = MonotonicMicros() / 1000 % kJobsMax;
  plan.machine.Plan(setup);
  RefuseImpossible(index, &plan);
  QueueScoring(index, &plan);
  for (size_t t = 0; t < input.tasks.size(); ++t) plan.generated += plan.machine.generated(t);
  return plan;
}

double GeneratedBytes(const RunRecord& record, const std::string& task,
                      const std::vector<int64_t>& documents) {
  double bytes = 0;
  for (const int64_t document : documents) {
    const CommittedFile& file = record.generations[record.generated.at(task).at(document)];
    bytes += static_cast<double>(file.bytes) /
             static_cast<double>(std::max<int64_t>(1, file.end - file.first));
  }
  return bytes;
}

}  // namespace evald
