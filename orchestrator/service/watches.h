#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "orchestrator/config/serve_config.h"
#include "orchestrator/service/service.h"
#include "orchestrator/service/watch_registry.h"
#include "orchestrator/watch/watcher.h"

namespace evald {

/// One watch at work: turns what a Watcher finds into submissions, and keeps what it did for people
/// to see. Any thread.
class ServiceWatch {
 public:
  struct Origin {
    std::string id;
    double created = 0;            ///< seconds since 1970; 0 for one of the configuration
    std::filesystem::path eval;    ///< the configuration's: read anew for each checkpoint
    std::filesystem::path memory;  ///< where it remembers what it has decided
  };

  /// `service` must outlive this. Throws Error as Watcher does.
  ServiceWatch(Service* service, WatchDefinition definition, Origin origin);
  /// Ends it, though the service answers no more.
  ~ServiceWatch();

  void Start() { watcher_->Start(); }
  /// Waits for a look under way. Not from the service's thread.
  void Stop();
  bool Covers(const std::filesystem::path& folder) const;
  void Wake() { watcher_->Wake(); }
  const std::string& id() const { return origin_.id; }
  bool configured() const { return !origin_.eval.empty(); }
  const std::filesystem::path& memory() const { return origin_.memory; }
  Json Resource() const;

 private:
  std::string Submit(const FoundCheckpoint& checkpoint, const std::string& key) const;
  void Note(const WatchNote& note);
  void Trouble(const std::string& why);

  Service* service_;
  const WatchDefinition definition_;
  const Origin origin_;
  std::atomic<bool> ending_{false};
  mutable std::mutex mutex_;
  int64_t submitted_ = 0, passed_over_ = 0, refused_ = 0;  // in this life
  std::deque<Json> recent_;                                // the newest last
  std::string problem_;
  std::unique_ptr<Watcher> watcher_;
};

/// The watches of a service: those of its configuration, and those registered over REST, which live
/// in its database. Also answers announcements.
class Watches : public WatchRegistry {
 public:
  static constexpr size_t kWatchesMax = 64;  // each has a thread

  /// Starts them. `service` must outlive this. Throws Error for a folder or eval.yaml of the
  /// configuration that is missing; a registered one waits for its folder.
  Watches(Service* service, const ServeConfig& config);

  void Add(WatchDefinition definition, Done<RegisteredWatch> done) override;
  std::vector<Json> List() const override;
  std::optional<Json> Find(const std::string& id) const override;
  void Remove(const std::string& id, Done<Json> done) override;

  /// A training run says that `checkpoint` is there: the watches of its folder look at once. Gives
  /// whether there is one.
  bool Announce(const std::filesystem::path& checkpoint);

 private:
  using WatchPtr = std::shared_ptr<ServiceWatch>;
  void Begin(const WatchDefinition& definition, double created, const Done<RegisteredWatch>& done);
  void Begun(const WatchPtr& watch, const Done<RegisteredWatch>& done);
  WatchPtr TakeOut(const std::string& id);
  WatchPtr Get(const std::string& id) const;
  std::vector<WatchPtr> All() const;
  void AddConfigured(const ServeWatch& watch);
  WatchPtr Make(const WatchDefinition& definition, double created);

  Service* service_;
  std::filesystem::path memory_dir_;
  mutable std::mutex mutex_;
  std::vector<WatchPtr> watches_;
};

}  // namespace evald
