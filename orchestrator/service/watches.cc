#include "orchestrator/service/watches.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/jsonl.h"
#include "base/log.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr size_t kIdDigits = 12;

Json ToJson(const WatchDefinition& watch) {
  return {{"checkpoints", watch.checkpoints.string()},
          {"yaml", watch.yaml},
          {"base", watch.base.string()},
          {"set", watch.set},
          {"which", watch.which},
          {"every", watch.every},
          {"marker", watch.marker},
          {"settle_s", watch.settle_s},
          {"poll_s", watch.poll_s},
          {"user", watch.user},
          {"priority", watch.priority}};
}

WatchDefinition DefinitionOf(const Json& json) {
  WatchDefinition watch;
  watch.checkpoints = json.at("checkpoints").get<std::string>();
  watch.yaml = json.at("yaml").get<std::string>();
  watch.base = json.at("base").get<std::string>();
  watch.set = json.at("set").get<std::vector<std::string>>();
  watch.which = json.at("which").get<std::string>();
  watch.every = json.at("every").get<int>();
  watch.marker = json.at("marker").get<std::string>();
  watch.settle_s = json.at("settle_s").get<double>();
  watch.poll_s = json.at("poll_s").get<double>();
  watch.user = json.at("user").get<std::string>();
  watch.priority = json.at("priority").get<int>();
  return watch;
}

// The id of a watch. Equal definitions are one watch.
std::string IdOf(const Json& definition) {
  return "watch-" + HashHex(definition.dump()).substr(0, kIdDigits);
}

Submission SubmissionOf(const WatchDefinition& watch) {
  Submission submission;
  submission.yaml = watch.yaml;
  submission.base = watch.base;
  submission.set = watch.set;
  submission.file = watch.file;
  submission.user = watch.user;
  submission.priority = watch.priority;
  return submission;
}

}  // namespace

Watches::Watches(Service* service, const ServeConfig& config)
    : service_(service),
      memory_dir_(config.state_dir / "watch"),
      per_user_max_(static_cast<size_t>(config.watches_per_user_max)) {
  for (const ServeWatch& watch : config.watches) AddConfigured(watch);
  for (const WatchRow& row : service->SavedWatches()) {
    try {
      watches_.push_back(
          Make(DefinitionOf(ParseJson(row.definition, "a watch in the database")), row.created));
    } catch (const std::exception& e) {
      log::Error("watch {} cannot be taken up again: {}", row.watch, e.what());
    }
  }
  for (const WatchPtr& watch : watches_) watch->Start();
}

Watches::~Watches() {
  watches_.insert(watches_.end(), ended_.begin(), ended_.end());
  for (const WatchPtr& watch : watches_) watch->End();
  for (const WatchPtr& watch : watches_) watch->Join();  // others may hold the watch for longer
}

void Watches::AddConfigured(const ServeWatch& watch) {
  WatchDefinition definition{
      watch.checkpoints, "",           watch.eval.parent_path(), {},           watch.which,
      watch.every,       watch.marker, watch.settle_s,           watch.poll_s, watch.user,
      watch.priority};
  const std::string place = HashHex(watch.checkpoints.string() + "\n" + watch.eval.string());
  watches_.push_back(std::make_shared<ServiceWatch>(
      service_, std::move(definition),
      ServiceWatch::Origin{"watch-" + place.substr(0, kIdDigits), 0, watch.eval,
                           memory_dir_ / (place + ".json")},
      &turns_));
}

Watches::WatchPtr Watches::Make(const WatchDefinition& definition, double created) {
  const std::string id = IdOf(ToJson(definition));
  return std::make_shared<ServiceWatch>(
      service_, definition, ServiceWatch::Origin{id, created, {}, memory_dir_ / (id + ".json")},
      &turns_);
}

void Watches::Add(WatchDefinition definition, Done<RegisteredWatch> done) {
  service_->loop()->Post([this, definition = std::move(definition), done = std::move(done)] {
    AddNow(definition, done);
  });
}

// A watch that exists already costs no judgement and no quota.
void Watches::AddNow(const WatchDefinition& definition, const Done<RegisteredWatch>& done) {
  const std::string id = IdOf(ToJson(definition));
  if (const WatchPtr known = Get(id)) return done(RegisteredWatch{known->Resource(), false});
  if (const std::optional<OverQuota> over = OverLimit(definition.user)) return done(*over);
  const auto own = adding_.emplace(id, definition.user);
  const Done<RegisteredWatch> added = [this, own, done](const Answer<RegisteredWatch>& answer) {
    adding_.erase(own);
    done(answer);
  };
  service_->CheckWatch(SubmissionOf(definition), definition.checkpoints,
                       [this, definition, added](const std::optional<Refusal>& refusal) {
                         if (!refusal) return Save(definition, added);
                         std::visit([&added](const auto& why) { added(why); }, *refusal);
                       });
}

// Why no further watch of this user is taken now. A removed watch counts until its thread has
// ended.
std::optional<OverQuota> Watches::OverLimit(const std::string& user) {
  std::erase_if(ended_, [](const WatchPtr& watch) { return watch->ended(); });
  std::vector<WatchPtr> watches = All();
  std::erase_if(watches, [](const WatchPtr& watch) { return watch->configured(); });
  watches.insert(watches.end(), ended_.begin(), ended_.end());
  if (watches.size() + adding_.size() >= kWatchesMax) {
    return OverQuota{"watches", fmt::format("there are {} watches already", kWatchesMax),
                     "remove one that is done with"};
  }
  if (user.empty()) return std::nullopt;
  const auto own = std::count_if(watches.begin(), watches.end(),
                                 [&](const WatchPtr& watch) { return watch->user() == user; });
  const auto adding = std::count_if(adding_.begin(), adding_.end(),
                                    [&](const auto& entry) { return entry.second == user; });
  if (static_cast<size_t>(own + adding) < per_user_max_) return std::nullopt;
  return OverQuota{"watches",
                   fmt::format("the user '{}' has {} watches, and may have {}", user, own + adding,
                               per_user_max_),
                   "remove one that is done with"};
}

void Watches::Save(const WatchDefinition& definition, const Done<RegisteredWatch>& done) {
  const Json json = ToJson(definition);
  const double now = WallSeconds();
  service_->SaveWatch({IdOf(json), now, json.dump()},
                      [this, definition, now, done] { Begin(definition, now, done); });
}

// Starts a watch once its definition is on disk. Looking at its folder may be slow.
void Watches::Begin(const WatchDefinition& definition, double created,
                    const Done<RegisteredWatch>& done) {
  auto watch = std::make_shared<WatchPtr>();
  service_->LookBeside(
      [this, watch, definition, created] { *watch = Make(definition, created); },
      [this, watch, definition, done](const std::optional<Error>& error) {
        if (error) {
          service_->DropWatch(IdOf(ToJson(definition)), nullptr);
          return done(Error(ErrorKind::kInfrastructure,
                            fmt::format("the watch cannot begin: {}", error->what())));
        }
        Begun(*watch, done);
      });
}

void Watches::Begun(const WatchPtr& watch, const Done<RegisteredWatch>& done) {
  if (const WatchPtr known = Get(watch->id()))
    return done(RegisteredWatch{known->Resource(), false});  // it was registered twice at once
  {
    const std::lock_guard lock(mutex_);
    watches_.push_back(watch);
  }
  const Json resource = watch->Resource();
  service_->Tell(
      "watch.state",
      {{"watch", watch->id()}, {"state", "added"}, {"checkpoints", resource.at("checkpoints")}});
  done(RegisteredWatch{resource, true});
  watch->Start();
}

Watches::WatchPtr Watches::TakeOut(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(watches_.begin(), watches_.end(),
                                  [&](const WatchPtr& watch) { return watch->id() == id; });
  if (found == watches_.end())
    throw Error(ErrorKind::kUsage, fmt::format("there is no watch {}", id));
  if ((*found)->configured()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("watch {} stands in the service's configuration", id),
                "take it out there and start the service again");
  }
  WatchPtr watch = std::move(*found);
  watches_.erase(found);
  return watch;
}

void Watches::Remove(const std::string& id, Done<Json> done) {
  service_->loop()->Post([this, id, done = std::move(done)] { RemoveNow(id, done); });
}

// The watch's thread may be looking at a slow folder, so nobody waits for its end.
void Watches::RemoveNow(const std::string& id, const Done<Json>& done) {
  WatchPtr watch;
  try {
    watch = TakeOut(id);
  } catch (const Error& e) {
    return done(e);
  }
  watch->End();
  ended_.push_back(watch);
  service_->DropWatch(id, [this, watch, done] {
    service_->LookBeside([watch] { watch->Forget(); },
                         [this, watch, done](const std::optional<Error>&) {
                           service_->Tell("watch.state",
                                          {{"watch", watch->id()}, {"state", "removed"}});
                           done(watch->Resource());
                         });
  });
}

std::vector<Watches::WatchPtr> Watches::All() const {
  const std::lock_guard lock(mutex_);
  return watches_;
}

Watches::WatchPtr Watches::Get(const std::string& id) const {
  for (const WatchPtr& watch : All()) {
    if (watch->id() == id) return watch;
  }
  return nullptr;
}

std::vector<Json> Watches::List() const {
  std::vector<Json> list;
  for (const WatchPtr& watch : All()) list.push_back(watch->Resource());
  return list;
}

std::optional<Json> Watches::Find(const std::string& id) const {
  const WatchPtr watch = Get(id);
  return watch ? std::optional(watch->Resource()) : std::nullopt;
}

bool Watches::Announce(const fs::path& checkpoint, bool look) {
  bool covered = false;
  for (const WatchPtr& watch : All()) {
    if (!watch->Covers(checkpoint.parent_path(), look)) continue;
    covered = true;
    watch->Wake();
  }
  return covered;
}

}  // namespace evald
