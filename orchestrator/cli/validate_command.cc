#include <fmt/format.h>

#include "base/print.h"
#include "base/text.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/cli/wanted.h"
#include "orchestrator/prepare/config_check.h"
#include "orchestrator/verdict/report_files.h"

namespace evald::cli {
namespace {

struct ValidateFlags {
  Wanted wanted;
  VerdictOptions verdict;
};

void PrintPlan(const EvalConfig& config, const Json& plan) {
  Print("{} is valid.\n\n", config.file.string());
  if (!plan["checkpoint"].is_null()) {
    Print("checkpoint  {}  ({} in {} files)\n", config.checkpoint.string(),
          HumanBytes(plan["checkpoint"]["bytes"].get<uint64_t>()),
          plan["checkpoint"]["files"].get<int>());
  }
  Print(
      "engine      {}\nworkers     {} × {} threads, devices: {}\nmetrics     {} processes\nstaging "
      "    {}, keeping {}\noutput      {}\n\n",
      config.engine.name, config.workers.count, config.workers.threads,
      Join(config.workers.devices, ", "), config.metrics.processes, config.staging.root.string(),
      HumanBytes(config.staging.keep_bytes), config.output_dir.string());
  if (config.judge.is_object()) {
    Print("judge       {} at {}\n\n", config.judge.value("model", "?"),
          config.judge.value("base_url", "?"));
  }
  const Json& chat = plan["prompts"]["chat_template"];
  if (!chat.is_null()) {
    Print("prompts     {} (sha256 {}), examples {}\n\n", chat["from"].get<std::string>(),
          chat["sha"].get<std::string>().substr(0, 12),
          plan["prompts"]["fewshot_as_multiturn"].get<bool>() ? "as turns" : "in one turn");
  }
  Print("  {:<34} {:<16} {:>5} {:>7} {:>18}\n", "task", "requests", "shots", "repeats",
        "documents");
  int64_t documents = 0;
  for (const Json& task : plan["tasks"]) {
    documents += task["documents"].get<int64_t>();
    Print("  {:<34} {:<16} {:>5} {:>7} {:>18}{}\n", task["name"].get<std::string>(),
          task["output_type"].get<std::string>(), task["num_fewshot"].get<int>(),
          task["repeats"].get<int>(),
          fmt::format("{} of {}", task["documents"].get<int64_t>(), task["of"].get<int64_t>()),
          task["runs_code"].get<bool>() ? "  runs code"
          : task["judged"].get<bool>()  ? "  asks a judge"
                                        : "");
  }
  Print("\n{} tasks, {} documents\n", plan["tasks"].size(), documents);
  if (config.gates.gates.empty()) return;
  Print("\n{} gates{}\n", config.gates.gates.size(),
        config.gates.baseline.empty() ? "" : ", baseline " + config.gates.baseline.string());
  for (const Gate& gate : config.gates.gates)
    Print("  {:<11} {}\n", ToString(gate.tier), gate.name);
}

ExitStatus Validate(const Common& common, const ValidateFlags& flags) {
  EvalConfig config = ReadWanted(flags.wanted);
  config.programs_here = true;
  config.gates = PolicyOf(flags.verdict, config.gates);
  Json plan = CheckConfig(config, common.binaries, PreparationInput::Work::kDescribe);
  plan["config"] = ToJson(config);
  if (common.json) {
    PrintJson(plan);
  } else {
    PrintPlan(config, plan);
  }
  return ExitStatus::kDone;
}

}  // namespace

void AddValidate(Command app, const Common* common, Action* action) {
  auto flags = std::make_shared<ValidateFlags>();
  Command command = app.AddCommand(
      "validate", "Check an eval.yaml and show the resolved plan without running it");
  AddWanted(command, &flags->wanted).Required();
  command
      .AddOption("--gates", &flags->verdict.gates, "A file with the gates to meet (docs/gates.md)")
      .Metavar("FILE")
      .ExistingFile();
  command
      .AddOption("--baseline", &flags->verdict.baseline,
                 "What gates compare with: a run's folder or a results file")
      .Metavar("RUN_OR_RESULTS")
      .ExistingPath();
  command.Footer("\nExample:\n  evald validate eval.yaml --set tasks=[gsm8k] --data-dir data");
  command.OnChosen([=] { *action = [=] { return Validate(*common, *flags); }; });
}

}  // namespace evald::cli
