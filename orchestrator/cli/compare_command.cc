#include <fmt/format.h>

#include <cstdio>

#include "base/print.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/cli/verdict_flags.h"
#include "orchestrator/prepare/preparer.h"

namespace evald::cli {
namespace {

struct CompareFlags {
  std::string candidate;
  VerdictOptions verdict;
};

ExitStatus Compare(const Common& common, const CompareFlags& flags) {
  JudgeRequest request;
  request.policy = PolicyOf(flags.verdict, GatePolicy());
  if (request.policy.baseline.empty())
    throw Error(ErrorKind::kUsage, "there is no baseline to compare with");
  request.candidate = flags.candidate;
  request.page = !flags.verdict.html.empty();
  const Judgement judgement =
      Preparer(common.binaries).Judge(InputOf(std::move(request), ReadRoots(), LimitsConfig()));
  WriteReports(flags.verdict, judgement, {});
  if (common.json) {
    PrintJson(
        {{"verdict", judgement.verdict}, {"exit_status", static_cast<int>(judgement.status)}});
  } else {
    PrintVerdict(judgement);
  }
  return judgement.status;
}

}  // namespace

void AddVerdictFlags(Command command, VerdictOptions* options) {
  command.AddOption("--gates", &options->gates, "A file with the gates to meet (docs/gates.md)")
      .Metavar("FILE")
      .ExistingFile();
  command.AddOption("--junit", &options->junit, "Write the verdict as JUnit XML").Metavar("FILE");
  command.AddOption("--markdown", &options->markdown, "Write the verdict as Markdown")
      .Metavar("FILE");
  command.AddOption("--html", &options->html, "Write the report as one HTML page").Metavar("FILE");
}

void PrintVerdict(const Judgement& judgement) {
  PrintLines(judgement.text);
  if (InGithubActions()) fmt::print("{}", judgement.annotations);
  std::fflush(stdout);
}

void AddCompare(Command app, const Common* common, Action* action) {
  auto flags = std::make_shared<CompareFlags>();
  Command command =
      app.AddCommand("compare", "Compare two finished evaluations document by document");
  command.AddOption("candidate", &flags->candidate, "A run's folder or a results file")
      .Required()
      .ExistingPath();
  command
      .AddOption("baseline", &flags->verdict.baseline, "Likewise; lm-evaluation-harness's will do")
      .Required()
      .ExistingPath();
  AddVerdictFlags(command, &flags->verdict);
  command.Footer(
      "\nExamples:\n  evald compare runs/step-1200 runs/step-600\n"
      "  evald compare runs/step-1200 harness/results_2026-01-01T00-00-00.json --gates gates.yaml "
      "--junit gates.xml\n\n"
      "Lost documents were right for the baseline alone, gained ones for the candidate alone.");
  command.OnChosen([=] { *action = [=] { return Compare(*common, *flags); }; });
}

}  // namespace evald::cli
