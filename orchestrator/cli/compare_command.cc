#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/print.h"
#include "base/text.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/cli/terminal.h"
#include "orchestrator/cli/verdict_flags.h"
#include "orchestrator/prepare/preparer.h"
#include "orchestrator/verdict/verdict.h"

namespace evald::cli {
namespace {

constexpr size_t kTasksShown = 12;

struct CompareFlags {
  std::string candidate;
  VerdictOptions verdict;
  bool other_versions = false;
  bool all = false;
};

// Says that tasks of other versions are not compared, which the table alone would say row by row.
ExitStatus RefuseOtherVersions(const Json& verdict) {
  std::vector<std::string> tasks = verdict.at("other_versions");
  const size_t count = tasks.size();
  if (count > kTasksShown) tasks.resize(kTasksShown);
  Print(stderr,
        "evald: the versions of {} tasks differ between the two sides, and they are not compared: "
        "{}{}; evaluate both with the same task files, or compare them all the same with "
        "--other-versions\n",
        count, Join(tasks, ", "), count > kTasksShown ? ", ..." : "");
  return ExitStatus::kUsage;
}

ExitStatus Compare(const Common& common, const CompareFlags& flags) {
  JudgeRequest request;
  request.policy = PolicyOf(flags.verdict, GatePolicy());
  if (request.policy.baseline.empty())
    throw Error(ErrorKind::kUsage, "there is no baseline to compare with");
  if (flags.other_versions) request.policy.other_versions = true;
  const bool compares_all = request.policy.other_versions;
  request.candidate = flags.candidate;
  request.page = !flags.verdict.html.empty();
  request.columns = OutputColumns();
  request.folded = !flags.all;
  const Judgement judgement =
      Preparer(common.binaries).Judge(InputOf(std::move(request), ReadRoots(), LimitsConfig()));
  WriteReports(flags.verdict, judgement, {});
  if (!common.json) PrintVerdict(judgement);
  ExitStatus status = judgement.status;
  if (!compares_all && judgement.verdict.contains("other_versions"))
    status = Foremost(status, RefuseOtherVersions(judgement.verdict));
  if (common.json)
    PrintJson({{"verdict", judgement.verdict}, {"exit_status", static_cast<int>(status)}});
  return status;
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
  command.AddFlag("--all", &flags->all, "Also show each task of a group");
  command.AddFlag("--other-versions", &flags->other_versions,
                  "Also compare tasks whose versions differ between the two sides");
  command.Footer(
      "\nExamples:\n  evald compare runs/step-1200 runs/step-600\n"
      "  evald compare runs/step-1200 harness/results_2026-01-01T00-00-00.json --gates gates.yaml "
      "--junit gates.xml\n\n"
      "Lost documents were right for the baseline alone, gained ones for the candidate alone.");
  command.OnChosen([=] { *action = [=] { return Compare(*common, *flags); }; });
}

}  // namespace evald::cli
