#include <fmt/format.h>

#include "base/print.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/cli/client.h"
#include "orchestrator/cli/follow.h"
#include "orchestrator/cli/run_text.h"

namespace evald::cli {
namespace {

struct SubmitFlags {
  FileSubmission submission;
  std::string resume;
  bool wait = false;
  ClientFlags client;
};

ExitStatus Submit(const Common& common, const SubmitFlags& flags) {
  if (flags.submission.wanted.path.empty() == flags.resume.empty()) {
    throw Error(ErrorKind::kUsage,
                flags.resume.empty() ? "eval.yaml is missing: what to evaluate, and how"
                                     : "--resume: goes without an eval.yaml; the run has its own",
                "evald submit eval.yaml, or evald submit --resume RUN");
  }
  Client client(ReadClientFlags(flags.client));
  const Json run = flags.resume.empty() ? SubmitFile(&client, flags.submission)
                                        : client.Post(RunPath(flags.resume) + "/resume");
  const std::string id = run.at("id").get<std::string>();
  if (flags.wait) {
    if (!common.quiet)
      Print(stderr, "evald: {} {}\n", flags.resume.empty() ? "submitted" : "resumed", id);
    return PrintRun(FollowRun(&client, id, common, false), common);
  }
  if (common.json) {
    PrintJson(run);
  } else {
    Print("{}\n", id);
  }
  return ExitStatus::kDone;
}

}  // namespace

void AddSubmit(Command app, const Common* common, Action* action) {
  auto flags = std::make_shared<SubmitFlags>();
  Command command = app.AddCommand("submit", "Give a run to a service (evald serve)");
  AddWanted(command, &flags->submission.wanted);
  command.AddOption("--user", &flags->submission.user,
                    "Whose share of the devices it counts against");
  command.AddOption("--priority", &flags->submission.priority, "Higher goes first")
      .Within(-100, 100);
  command.AddOption("--key", &flags->submission.key,
                    "Idempotency key: a second submission under it is the first one");
  command
      .AddOption("--resume", &flags->resume,
                 "Take up a run again that ended without its results (incomplete, failed, "
                 "cancelled): what is committed counts, the rest is done")
      .Metavar("RUN");
  command.AddFlag("--wait", &flags->wait,
                  "Follow the run to its end; the exit status is the run's");
  AddClientFlags(command, &flags->client);
  command.Footer(
      "\nPaths are the service's host's.\n\nExamples:\n  evald submit eval.yaml                    "
      "   prints the run's id\n"
      "  evald submit eval.yaml --wait                as 'evald run', on the service's devices\n"
      "  evald submit eval.yaml --key train-7-3000    harmless to repeat\n"
      "  evald submit --resume step-3000-20260102     finishes one that ended incomplete");
  command.OnChosen([=] { *action = [=] { return Submit(*common, *flags); }; });
}

}  // namespace evald::cli
