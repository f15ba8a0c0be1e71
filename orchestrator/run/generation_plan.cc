#include "orchestrator/run/generation_plan.h"

#include <fmt/format.h>

#include "checkpoint/generation_config.h"
#include "datasets/task_config.h"
#include "evald/error.h"

namespace evald {
namespace {

// The same check as the engines': some of the context must be left for the prompt.
void CheckSpace(const SamplingParams& sampling, int max_length) {
  if (max_length == 0 || sampling.max_gen_toks < max_length) return;
  throw Error(
      ErrorKind::kInput,
      fmt::format("max_gen_toks ({}) leaves nothing of the context length ({}) for the prompt",
                  sampling.max_gen_toks, max_length),
      "lower the task's max_gen_toks or use a model with a longer context");
}

}  // namespace

GenerationPlan PlanGeneration(const EvalConfig& config, const Suite& suite, const Json& engine,
                              const ReadFolder& checkpoint) {
  GenerationPlan plan;
  if (!config.engine.kind().HasSetting("generation_config")) return plan;
  const auto generation = GenerationConfig::Read(checkpoint, config.engine.generation_config);
  for (const SuiteTask& task : suite.tasks) {
    const TaskDefinition& definition = task.definition;
    if (definition.output_type != "generate_until" || definition.command) continue;
    try {
      const SamplingParams sampling = SamplingFromKwargs(
          definition.config.value("generation_kwargs", Json::object()), definition.name);
      plan.in_force[definition.name] = generation.InForce(sampling);
      generation.For(sampling);
      CheckSpace(sampling, engine.value("max_length", 0));
    } catch (const Error& e) {
      plan.impossible[definition.name] = e.what();
    }
  }
  return plan;
}

}  // namespace evald
