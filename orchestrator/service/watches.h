#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "orchestrator/config/serve_config.h"
#include "orchestrator/service/run_service.h"
#include "orchestrator/watch/watcher.h"

namespace evald {

/// The watches of a service: each new checkpoint becomes a run. Also answers announcements.
class Watches {
 public:
  /// Starts them. `service` must outlive this. Throws Error for a folder or eval.yaml that is missing.
  Watches(RunService* service, const ServeConfig& config);

  /// Ends them, though the service answers no more.
  ~Watches();

  /// A training run says that `checkpoint` is there: the watches of its folder look at once. Gives
  /// whether there is one.
  bool Announce(const std::filesystem::path& checkpoint);

 private:
  std::atomic<bool> ending_{false};
  std::vector<std::unique_ptr<Watcher>> watchers_;
};

/// WatchWhich of "all", "newest" or "every".
WatchWhich WatchWhichFrom(const std::string& text);

/// Where the watch of `checkpoints` keeps what it has decided: below `state_dir`.
std::filesystem::path WatchMemoryFile(const std::filesystem::path& state_dir, const std::filesystem::path& checkpoints,
                                      const std::filesystem::path& eval);

}  // namespace evald
