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

// Equal definitions are one watch.
std::string IdOf(const Json& definition) {
  return "watch-" + HashHex(definition.dump()).substr(0, kIdDigits);
}

Submission SubmissionOf(const WatchDefinition& watch) {
  Submission submission;
  submission.yaml = watch.yaml;
  submission.base = watch.base;
  submission.set = watch.set;
  submission.user = watch.user;
  submission.priority = watch.priority;
  return submission;
}

}  // namespace

Watches::Watches(Service* service, const ServeConfig& config)
    : service_(service), memory_dir_(config.state_dir / "watch") {
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

void Watches::AddConfigured(const ServeWatch& watch) {
  WatchDefinition definition{
      watch.checkpoints, "",           watch.eval.parent_path(), {},           watch.which,
      watch.every,       watch.marker, watch.settle_s,           watch.poll_s, watch.user,
      watch.priority};
  const std::string place = HashHex(watch.checkpoints.string() + "\n" + watch.eval.string());
  watches_.push_back(std::make_shared<ServiceWatch>(
      service_, std::move(definition),
      ServiceWatch::Origin{"watch-" + place.substr(0, kIdDigits), 0, watch.eval,
                           memory_dir_ / (place + ".json")}));
}

Watches::WatchPtr Watches::Make(const WatchDefinition& definition, double created) {
  const std::string id = IdOf(ToJson(definition));
  return std::make_shared<ServiceWatch>(
      service_, definition, ServiceWatch::Origin{id, created, {}, memory_dir_ / (id + ".json")});
}

void Watches::Add(WatchDefinition definition, Done<RegisteredWatch> done) {
  const ReadRoots& roots = service_->roots();
  if (!roots.HasFolder(definition.checkpoints)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("checkpoints: {} {}", definition.checkpoints.string(),
                            roots.anywhere() ? "is not a folder of this host" : ReadRoots::kNotThere),
                "name the folder that a training run writes its checkpoints into");
  }
  service_->CheckWatch(SubmissionOf(definition), definition.checkpoints);
  const Json json = ToJson(definition);
  const std::string id = IdOf(json);
  if (const WatchPtr known = Get(id)) return done(RegisteredWatch{known->Resource(), false});
  if (All().size() >= kWatchesMax) {
    throw Error(ErrorKind::kUsage, fmt::format("there are {} watches already", kWatchesMax),
                "remove one that is done with");
  }
  const double now = WallSeconds();
  service_->SaveWatch({id, now, json.dump()}, [this, definition = std::move(definition), now,
                                               done] { Begin(definition, now, done); });
}

// Once it is on disk. Its folder may be slow to look at.
void Watches::Begin(const WatchDefinition& definition, double created,
                    const Done<RegisteredWatch>& done) {
  auto watch = std::make_shared<WatchPtr>();
  service_->LookBeside([this, watch, definition, created] { *watch = Make(definition, created); },
                       [this, watch, done](const std::optional<Error>& error) {
                         if (error) {
                           return done(Error(ErrorKind::kInfrastructure,
                                             fmt::format("the watch cannot begin: {}", error->what())));
                         }
                         Begun(*watch, done);
                       });
}

void Watches::Begun(const WatchPtr& watch, const Done<RegisteredWatch>& done) {
  if (const WatchPtr known = Get(watch->id()))
    return done(RegisteredWatch{known->Resource(), false});  // twice at once
  {
    const std::lock_guard lock(mutex_);
    watches_.push_back(watch);
  }
  const Json resource = watch->Resource();
  service_->Tell("watch.state", {{"watch", watch->id()},
                                 {"state", "added"},
                                 {"checkpoints", resource.at("checkpoints")}});
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
  const WatchPtr watch = TakeOut(id);
  watch->Stop();
  service_->DropWatch(id, [this, watch, done] {
    const auto forget = [watch] {
      std::error_code ignored;
      fs::remove(watch->memory(), ignored);
    };
    service_->LookBeside(forget, [this, watch, done](const std::optional<Error>&) {
      service_->Tell("watch.state", {{"watch", watch->id()}, {"state", "removed"}});
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

bool Watches::Announce(const fs::path& checkpoint) {
  bool covered = false;
  for (const WatchPtr& watch : All()) {
    if (!watch->Covers(checkpoint.parent_path())) continue;
    covered = true;
    watch->Wake();
  }
  return covered;
}

}  // namespace evald
