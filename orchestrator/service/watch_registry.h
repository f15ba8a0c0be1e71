#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "evald/error.h"
#include "evald/json.h"
#include "orchestrator/service/run_service.h"

namespace evald {

/// The definition of a watch: each complete checkpoint that appears in a folder becomes a run.
struct WatchDefinition {
  std::filesystem::path checkpoints;  ///< the folder, absolute
  std::string yaml;                   ///< the text of the eval.yaml for its checkpoints
  std::filesystem::path base;         ///< folder that relative paths in it start from
  std::vector<std::string> set;       ///< "key.path=value" overrides
  std::string which = "all";          ///< all, newest or every
  int every = 1;                      ///< for "every": every n-th checkpoint
  std::string marker;                 ///< file that marks a complete checkpoint; "" for none
  double settle_s = 5;                ///< without a marker: seconds without a change of any file
  double poll_s = 5;
  std::string user;
  int priority = 0;       ///< of its runs, -100 to 100
  std::string file = {};  ///< the name of the eval.yaml in messages; not kept
};

/// The answer to a registration.
struct RegisteredWatch {
  Json watch;           ///< the Watch resource (docs/openapi.json)
  bool created = true;  ///< false: the same watch was there already
};

/// The watches of a service, as the REST interface uses them. Methods may be called from any thread
/// and return at once. `done` may come on another thread and must not block.
class WatchRegistry {
 public:
  template <typename T>
  using Done = std::function<void(Answer<T>)>;

  virtual ~WatchRegistry() = default;

  /// Registers a watch, over restarts too. Registering the same watch again gives the first one.
  /// Errors: kUsage or kInput if the folder is none, or if a submission would be refused; OverQuota
  /// if this user, or all users together, have too many watches.
  virtual void Add(WatchDefinition definition, Done<RegisteredWatch> done) = 0;
  /// Watch resources, oldest first.
  virtual std::vector<Json> List() const = 0;
  virtual std::optional<Json> Find(const std::string& id) const = 0;
  /// Ends a watch without waiting for a look or a judgement that is under way. Its runs go on.
  /// Answers with its last resource, or with Error(kUsage) if the service's configuration defines
  /// the watch or there is no such watch.
  virtual void Remove(const std::string& id, Done<Json> done) = 0;
};

}  // namespace evald
