#include "orchestrator/service/watches.h"

#include <spdlog/spdlog.h>

#include <future>

#include "base/file.h"
#include "base/hash.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::milliseconds kPatience{50};

// Submits and waits for the answer: watchers have threads of their own.
std::string SubmitAndWait(RunService* service, const ServeWatch& watch, const FoundCheckpoint& checkpoint,
                          const std::string& key, const std::atomic<bool>& ending) {
  Submission submission;
  submission.yaml = ReadFile(watch.eval);
  submission.base = watch.eval.parent_path();
  submission.set = {"checkpoint=" + Json(checkpoint.path.string()).dump()};
  submission.user = watch.user;
  submission.priority = watch.priority;
  submission.idempotency_key = key;
  auto answer = std::make_shared<std::promise<std::variant<Submitted, Error>>>();
  service->Submit(std::move(submission), [answer](std::variant<Submitted, Error> result) {
    answer->set_value(std::move(result));
  });
  std::future<std::variant<Submitted, Error>> future = answer->get_future();
  while (future.wait_for(kPatience) != std::future_status::ready) {
    if (ending) throw Error(ErrorKind::kInfrastructure, "the service is ending");
  }
  const std::variant<Submitted, Error> result = future.get();
  if (const auto* error = std::get_if<Error>(&result)) throw *error;
  return std::get<Submitted>(result).run.at("id").get<std::string>();
}

}  // namespace

WatchWhich WatchWhichFrom(const std::string& text) {
  return text == "newest" ? WatchWhich::kNewest : text == "every" ? WatchWhich::kEvery : WatchWhich::kAll;
}

fs::path WatchMemoryFile(const fs::path& state_dir, const fs::path& checkpoints, const fs::path& eval) {
  return state_dir / "watch" / (HashHex(checkpoints.string() + "\n" + eval.string()) + ".json");
}

Watches::Watches(RunService* service, const ServeConfig& config) {
  for (const ServeWatch& watch : config.watches) {
    WatchOptions options{watch.checkpoints, WatchWhichFrom(watch.which), watch.every, watch.marker,
                         watch.settle_s,    watch.poll_s,
                         WatchMemoryFile(config.state_dir, watch.checkpoints, watch.eval)};
    Watcher::Actions actions;
    actions.submit = [this, service, watch](const FoundCheckpoint& checkpoint, const std::string& key) {
      return SubmitAndWait(service, watch, checkpoint, key, ending_);
    };
    actions.is_over = [service](const std::string& run) { return service->View()->active_runs.count(run) == 0; };
    actions.tell = [folder = watch.checkpoints.string()](const std::string& line) {
      spdlog::info("{}: {}", folder, line);
    };
    watchers_.push_back(std::make_unique<Watcher>(std::move(options), std::move(actions)));
  }
  for (const auto& watcher : watchers_) watcher->Start();
}

Watches::~Watches() { ending_ = true; }

bool Watches::Announce(const fs::path& checkpoint) {
  bool covered = false;
  for (const auto& watcher : watchers_) {
    std::error_code error;
    if (!fs::equivalent(watcher->options().checkpoints, checkpoint.parent_path(), error)) continue;
    covered = true;
    watcher->Wake();
  }
  return covered;
}

}  // namespace evald
