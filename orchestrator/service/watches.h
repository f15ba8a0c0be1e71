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

/// One watch at work: submits the checkpoints that its Watcher finds, and keeps a record for
/// people. Any thread.
class ServiceWatch {
 public:
  struct Origin {
    std::string id;
    double created = 0;  ///< seconds since 1970; 0 for a watch of the configuration
    /// For a watch of the configuration: its eval.yaml, read anew for each checkpoint
    std::filesystem::path eval;
    std::filesystem::path memory;  ///< where the watch remembers its decisions
  };

  /// `service` and `turns` must outlive this. Throws Error as Watcher does.
  ServiceWatch(Service* service, WatchDefinition definition, Origin origin, ScanTurns* turns);
  /// Ends the watch even if the service no longer answers. Waits for a look under way.
  ~ServiceWatch();

  void Start() { watcher_->Start(); }
  /// Ends the watch without waiting. It submits and tells nothing more, and the judging of a
  /// submission under way is cut short.
  void End();
  /// Waits until the watch has ended. Call End first.
  void Join() { watcher_->Stop(); }
  /// Whether the watch has ended. Then its destructor waits for nothing.
  bool ended() const { return watcher_->ended(); }
  /// Forgets the watch's decisions. Call End first.
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
  int64_t submitted_ = 0, passed_over_ = 0, refused_ = 0;  // by this process
  std::deque<Json> recent_;                                // the newest last
  std::string problem_;
  std::unique_ptr<Watcher> watcher_;
};

/// The watches of a service: those of its configuration, and those registered over REST, which are
/// kept in its database. Also answers announcements.
class Watches : public WatchRegistry {
 public:
  static constexpr size_t kWatchesMax = 64;  // each has a thread
  static constexpr size_t kScansAtOnce = 4;

  /// Starts the watches. `service` must outlive them. Throws Error if a folder or eval.yaml of the
  /// configuration is missing; a registered watch waits for its folder.
  Watches(Service* service, const ServeConfig& config);
  /// Ends the watches. Waits for looks under way.
  ~Watches() override;

  void Add(WatchDefinition definition, Done<RegisteredWatch> done) override;
  std::vector<Json> List() const override;
  std::optional<Json> Find(const std::string& id) const override;
  void Remove(const std::string& id, Done<Json> done) override;

  /// A training run says that `checkpoint` is there: the watches of its folder look at once.
  /// Returns whether there is one. `look`: also compares folders by the file system, in case they
  /// have other names, which may be slow.
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
  // Users, by id, of watches that are being registered; loop thread only
  Adding adding_;
  // Removed watches whose threads may still be at work; loop thread only
  std::vector<WatchPtr> ended_;
  mutable std::mutex mutex_;
  std::vector<WatchPtr> watches_;
};

}  // namespace evald
