#pragma once

#include <atomic>
#include <string>

#include "orchestrator/cli/cli.h"
#include "orchestrator/cli/client.h"

namespace evald::cli {

/// A run to submit from a file.
struct FileSubmission {
  std::string file;  ///< eval.yaml
  EvalOverrides overrides;
  std::string user;
  int priority = 0;
  std::string key;  ///< idempotency key; "" makes one
};

/// What both POST /v1/runs and POST /v1/watches take of it. Paths are made absolute.
Json SubmissionBody(const FileSubmission& submission);

/// Catches Ctrl-C while it lives; one at a time.
class CatchInterrupt {
 public:
  CatchInterrupt();
  ~CatchInterrupt();
  const std::atomic<bool>* caught() const;

 private:
  void (*old_)(int);
};

/// Submits; gives the Run resource. Tries again when the service does not answer, under one key, so
/// that a submission whose answer was lost is not made twice.
Json SubmitFile(Client* client, const FileSubmission& submission);

/// Shows a run of a service until it is over: progress on standard error; with --json and
/// `print_events`, each event as a line of JSON on standard output. Gives the Run resource. Ctrl-C
/// ends the watching and not the run: throws Error(kInfrastructure) that says how to go on.
Json FollowRun(Client* client, const std::string& run, const Common& common, bool print_events);

/// What a run that is over came to, on standard output: the Run resource with --json, else text.
ExitStatus PrintRun(const Json& run, const Common& common);

}  // namespace evald::cli
