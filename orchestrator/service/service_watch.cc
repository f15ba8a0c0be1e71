#include <future>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "orchestrator/service/watches.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::milliseconds kPatience{200};
constexpr size_t kRecentWatchesMax = 20;

WatchWhich WhichFrom(const std::string& text) {
  return text == "newest"  ? WatchWhich::kNewest
         : text == "every" ? WatchWhich::kEvery
                           : WatchWhich::kAll;
}

Json OrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }

}  // namespace

ServiceWatch::ServiceWatch(Service* service, WatchDefinition definition, Origin origin,
                           ScanTurns* turns)
    : service_(service), definition_(std::move(definition)), origin_(std::move(origin)) {
  WatchOptions options;
  options.checkpoints = definition_.checkpoints;
  options.which = WhichFrom(definition_.which);
  options.every = definition_.every;
  options.marker = definition_.marker;
  options.settle_s = definition_.settle_s;
  options.poll_s = definition_.poll_s;
  options.memory = origin_.memory;
  options.scope =
      configured()
          ? origin_.eval.string()
          : HashHex(
                Json::array({definition_.yaml, definition_.base.string(), definition_.set}).dump());
  options.may_be_missing = !configured();
  options.roots = service->roots();
  options.turns = turns;
  // Watches of nobody do not wait for each other
  options.user = definition_.user.empty() ? origin_.id : definition_.user;
  Watcher::Actions actions;
  actions.submit = [this](const FoundCheckpoint& checkpoint, const std::string& key) {
    return Submit(checkpoint, key);
  };
  actions.is_over = [service](const std::string& run) {
    return service->View()->active_runs.count(run) == 0;
  };
  actions.tell = [this](const WatchNote& note) { Note(note); };
  actions.trouble = [this](const std::string& why) { Trouble(why); };
  watcher_ = std::make_unique<Watcher>(std::move(options), std::move(actions));
}

ServiceWatch::~ServiceWatch() {
  End();
  watcher_->Stop();
}

void ServiceWatch::End() {
  {
    const std::lock_guard lock(mutex_);
    *ending_ = true;
  }
  watcher_->End();
}

// Waits for the answer: a watch has a thread of its own.
std::string ServiceWatch::Submit(const FoundCheckpoint& checkpoint, const std::string& key) const {
  Submission submission;
  submission.yaml = configured() ? ReadFile(origin_.eval) : definition_.yaml;
  submission.base = definition_.base;
  submission.set = definition_.set;
  submission.set.push_back("checkpoint=" + Json(checkpoint.path.string()).dump());
  submission.user = definition_.user;
  submission.priority = definition_.priority;
  submission.idempotency_key = key;
  submission.key_decides = true;  // the eval.yaml or the priority may have changed since
  auto answer = std::make_shared<std::promise<Answer<Submitted>>>();
  service_->Submit(
      std::move(submission),
      [answer](Answer<Submitted> result) { answer->set_value(std::move(result)); },
      [ending = ending_] { return ending->load(); });
  std::future<Answer<Submitted>> future = answer->get_future();
  while (future.wait_for(kPatience) != std::future_status::ready) {
    if (*ending_) throw Error(ErrorKind::kInfrastructure, "the watch is ending");
  }
  const Answer<Submitted> result = future.get();
  if (const auto* error = std::get_if<Error>(&result)) throw *error;
  // The checkpoint is submitted when other runs are over
  if (const auto* over = std::get_if<OverQuota>(&result)) {
    throw Error(ErrorKind::kInfrastructure, over->message);
  }
  return std::get<Submitted>(result).run.at("id").get<std::string>();
}

void ServiceWatch::Note(const WatchNote& note) {
  Json entry = {{"checkpoint", note.checkpoint},
                {"decision", note.decision},
                {"run", OrNull(note.run)},
                {"detail", OrNull(note.detail)}};
  {
    const std::lock_guard lock(mutex_);
    if (*ending_) return;
    if (!recent_.empty()) {  // the same outcome again and again is shown once
      Json last = recent_.back();
      last.erase("time");
      if (last == entry) return;
    }
    submitted_ += note.decision == "submitted" ? 1 : 0;
    passed_over_ += note.decision == "passed-over" ? 1 : 0;
    refused_ += note.decision == "refused" ? 1 : 0;
    Json timed = entry;
    timed["time"] = Rfc3339(WallSeconds());
    recent_.push_back(std::move(timed));
    if (recent_.size() > kRecentWatchesMax) recent_.pop_front();
    entry["watch"] = id();
    // Before the removal of this watch can be told
    service_->Tell("watch.checkpoint", std::move(entry));
  }
  log::Info("{}/{}: {} {}{}", definition_.checkpoints.string(), note.checkpoint, note.decision,
            note.run, note.detail);
}

void ServiceWatch::Trouble(const std::string& why) {
  if (why.empty()) {
    log::Info("{}: can be looked at again", definition_.checkpoints.string());
  } else {
    log::Warn("watch {}: {}", id(), why);
  }
  const std::lock_guard lock(mutex_);
  problem_ = why;
}

bool ServiceWatch::Covers(const fs::path& folder, bool look) const {
  if (!look) return definition_.checkpoints.lexically_normal() == folder.lexically_normal();
  std::error_code error;
  return fs::equivalent(definition_.checkpoints, folder, error);
}

Json ServiceWatch::Resource() const {
  const std::lock_guard lock(mutex_);
  return {{"id", id()},
          {"checkpoints", definition_.checkpoints.string()},
          {"which", definition_.which},
          {"every", definition_.which == "every" ? Json(definition_.every) : Json()},
          {"marker", OrNull(definition_.marker)},
          {"settle_s", definition_.settle_s},
          {"poll_s", definition_.poll_s},
          {"user", definition_.user},
          {"priority", definition_.priority},
          {"configured", configured()},
          {"created", Rfc3339(origin_.created)},
          {"submitted", submitted_},
          {"passed_over", passed_over_},
          {"refused", refused_},
          {"recent", recent_},
          {"problem", OrNull(problem_)}};
}

}  // namespace evald
