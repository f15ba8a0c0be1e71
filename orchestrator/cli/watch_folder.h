#pragma once

#include <string>

#include "orchestrator/cli/cli.h"
#include "orchestrator/cli/client.h"
#include "orchestrator/cli/follow.h"

namespace evald::cli {

/// A folder for a service to watch.
struct FolderWatch {
  std::string checkpoints;     ///< the folder
  FileSubmission submission;   ///< the eval.yaml for each checkpoint
  std::string policy = "all";  ///< all, newest or every-N
  std::string marker;
  double settle_s = 5;
};

/// Registers the watch with the service. Then, unless `detach`, shows its events until Ctrl-C or
/// until it is removed. With --json, prints the Watch resource, then each event as a line.
ExitStatus WatchFolder(Client* client, const FolderWatch& watch, bool detach, const Common& common);

/// Prints the service's watches on standard output.
ExitStatus ListWatches(Client* client, const Common& common);
ExitStatus RemoveWatch(Client* client, const std::string& id, const Common& common);

/// Splits "every-5" into "which" and "every". Throws Error(kUsage) for an unknown policy.
Json PolicyOf(const std::string& policy);

}  // namespace evald::cli
