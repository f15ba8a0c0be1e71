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

/// What a watch is registered with: each whole checkpoint that appears under a folder becomes a
/// run.
struct WatchDefinition {
  std::filesystem::path checkpoints;  ///< the folder, absolute
  std::string yaml;                   ///< the text of the eval.yaml that each is evaluated by
  std::filesystem::path base;         ///< folder that relative paths in it start from
  std::vector<std::string> set;       ///< "key.path=value" overrides
  std::string which = "all";          ///< all, newest or every
  int every = 1;                      ///< for "every": each n-th
  std::string marker;                 ///< file that says that a checkpoint is complete; "" for none
  double settle_s = 5;                ///< without one: how long nothing of it may change
  double poll_s = 5;
  std::string user;
  int priority = 0;  ///< of the runs, -100 to 100
};

/// What became of a registration.
struct RegisteredWatch {
  Json watch;           ///< the Watch resource (docs/openapi.json)
  bool created = true;  ///< false: the same watch was there
};

/// The watches of a service, as the REST interface asks for them. Methods may be called from any
/// thread and return at once; `done` may come on another one and must not block.
class WatchRegistry {
 public:
  template <typename T>
  using Done = std::function<void(Answer<T>)>;

  virtual ~WatchRegistry() = default;

  /// Registers a watch, over restarts too. A second registration of the same is the first one.
  /// Answers with an Error: kUsage or kInput for a folder that is none and for what a submission
  /// would be refused for; with OverQuota where the user has too many watches, or all have.
  virtual void Add(WatchDefinition definition, Done<RegisteredWatch> done) = 0;
  /// Watch resources, oldest first.
  virtual std::vector<Json> List() const = 0;
  virtual std::optional<Json> Find(const std::string& id) const = 0;
  /// Ends a watch, and waits for no look and no judgement of it; its runs go on. Gives its last
  /// resource. Answers with Error(kUsage) for one that stands in the service's configuration or is
  /// not there.
  virtual void Remove(const std::string& id, Done<Json> done) = 0;
};

}  // namespace evald
