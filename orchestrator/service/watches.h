#pragma once

#include <atomic>
#include <deque>
#include <map>
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

  /// `service` and `turns` must outlive this. Throws Error as Watcher does.
  ServiceWatch(Service* service, WatchDefinition definition, Origin origin, ScanTurns* turns);
  /// Ends it, though the service answers no more; waits for a look under way.
  ~ServiceWatch();

  void Start() { watcher_->Start(); }
  /// Has it end without waiting for that: it submits and tells nothing more, and a submission under
  /// way is not judged to its end.
  void End();
  /// Waits until it has ended. For one that was ended.
  void Join() { watcher_->Stop(); }
  /// Whether it has ended: its destructor waits for nothing.
  bool ended() const { return watcher_->ended(); }
  /// Forgets what it has decided. For one that was ended.
  void Forget() { watcher_->Forget(); }
  bool Covers(const std::filesystem::path& folder, bool look) const;
  void Wake() { watcher_->Wake(); }
  const std::string& id() const { return origin_.id; }
  bool configured() const { return !origin_.eval.empty(); }
  const std::string& user() const { return definition_.user; }
  Json Resource() const;

 private:
  std::string Submit(const FoundCheckpoint& checkpoint, const std::string& key) const;
  void Note(const WatchNote& note);
  void Trouble(const std::string& why);

  Service* service_;
  const WatchDefinition definition_;
  const Origin origin_;
  const std::shared_ptr<std::atomic<bool>> ending_ = std::make_shared<std::atomic<bool>>(false);
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
  static constexpr size_t kScansAtOnce = 4;

  /// Starts them. `service` must outlive this. Throws Error for a folder or eval.yaml of the
  /// configuration that is missing; a registered one waits for its folder.
  Watches(Service* service, const ServeConfig& config);
  /// Ends them; waits for looks under way.
  ~Watches() override;

  void Add(WatchDefinition definition, Done<RegisteredWatch> done) override;
  std::vector<Json> List() const override;
  std::optional<Json> Find(const std::string& id) const override;
  void Remove(const std::string& id, Done<Json> done) override;

  /// A training run says that `checkpoint` is there: the watches of its folder look at once. Gives
  /// whether there is one. With `look`, other names of a folder count too: that may take its time.
  bool Announce(const std::filesystem::path& checkpoint, bool look);

 private:
  using WatchPtr = std::shared_ptr<ServiceWatch>;
  using Adding = std::multimap<std::string, std::string>;
  void AddNow(const WatchDefinition& definition, const Done<RegisteredWatch>& done);
  std::optional<OverQuota> OverLimit(const std::string& user);
  void Save(const WatchDefinition& definition, const Done<RegisteredWatch>& done);
  void Begin(const WatchDefinition& definition, double created, const Done<RegisteredWatch>& done);
  void Begun(const WatchPtr& watch, const Done<RegisteredWatch>& done);
  void RemoveNow(const std::string& id, const Done<Json>& done);
  WatchPtr TakeOut(const std::string& id);
  WatchPtr Get(const std::string& id) const;
  std::vector<WatchPtr> All() const;
  void AddConfigured(const ServeWatch& watch);
  WatchPtr Make(const WatchDefinition& definition, double created);

  Service* service_;
  std::filesystem::path memory_dir_;
  size_t per_user_max_;
  ScanTurns turns_{kScansAtOnce};
  Adding adding_;                // users, by id: watches that are being registered; the loop's
  std::vector<WatchPtr> ended_;  // removed ones, whose threads may still be at work; the loop's
  mutable std::mutex mutex_;
  std::vector<WatchPtr> watches_;
};

}  // namespace evald
