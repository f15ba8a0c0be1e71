#pragma once

#include <atomic>
#include <string>

#include "orchestrator/cli/cli.h"
#include "orchestrator/cli/client.h"
#include "orchestrator/cli/wanted.h"

namespace evald::cli {

/// A run to submit.
struct FileSubmission {
  Wanted wanted;
  std::string user;
  int priority = 0;
  std::string key;  ///< idempotency key; "": a new one
};

/// The members that POST /v1/runs and POST /v1/watches have in common. Paths are made absolute.
Json SubmissionBody(const FileSubmission& submission);

/// Catches Ctrl-C during its lifetime. One at a time.
class CatchInterrupt {
 public:
  CatchInterrupt();
  ~CatchInterrupt();
  const std::atomic<bool>* caught() const;

 private:
  void (*old_)(int);
};

/// Submits the run and returns its Run resource. Tries again under the same key if the service does
/// not answer, so that a submission whose answer was lost is not made twice.
Json SubmitFile(Client* client, const FileSubmission& submission);

/// Shows a run of a service until it is over, and returns its Run resource. Progress goes to
/// standard error; with --json and `print_events`, each event goes to standard output as a line of
/// JSON. Ctrl-C ends the display and not the run: throws Error(kInfrastructure) that says how to go
/// on.
Json FollowRun(Client* client, const std::string& run, const Common& common, bool print_events);

/// Prints the result of a run that is over: the Run resource with --json, otherwise text.
ExitStatus PrintRun(const Json& run, const Common& common);

}  // namespace evald::cli
