#include "worker/replay/replay_engine.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/clock.h"
#include "evald/error.h"
#include "worker/engine/settings.h"
#include "worker/replay/generation_index.h"

namespace evald {
namespace {

constexpr int kConcurrency = 64;

class ReplayEngine : public Engine {
 public:
  explicit ReplayEngine(const EngineOptions& options) {
    const Settings settings("replay", options.settings);
    path_ = settings.Require<std::string>("generations");
    roots_ = options.roots;
    if (!roots_.HasFile(path_) && !roots_.HasFolder(path_))
      settings.Refuse(
          "generations", "a file or folder that is there",
          "name the folder of a run whose answers lie on the host where the engine runs");
  }

  EngineInfo Info() const override {
    EngineInfo info;
    info.name = "replay";
    info.version = "1";
    info.kinds = {RequestKind::kGenerateUntil, RequestKind::kLoglikelihood,
                  RequestKind::kLoglikelihoodRolling};
    info.deterministic = true;
    info.concurrency = kConcurrency;
    info.device = "replay";
    return info;
  }

  void Load(const std::filesystem::path&) override {
    if (index_) return;  // the generations do not depend on the checkpoint
    const int64_t begin = MonotonicMicros();
    try {
      index_.emplace(path_, roots_);
    } catch (Error& e) {
      throw e.AddContext("key 'engine.generations'");
    }
    seconds_ = static_cast<double>(MonotonicMicros() - begin) / 1e6;
  }

  void Submit(uint64_t tag, Request request) override {
    const RequestKey key{request.doc_id, request.idx, request.repeat};
    ready_.push_back({tag, index_->Find(request.task, key, request.kind)});
  }

  std::vector<Finished> Step(std::chrono::milliseconds) override {
    return std::exchange(ready_, {});
  }
  size_t pending() const override { return ready_.size(); }
  void CancelAll() override { ready_.clear(); }

  Json LoadReport() const override {
    Json report = Json::object();
    report["bytes"] = index_ ? index_->bytes() : 0;
    report["seconds"] = seconds_;
    report["generations"] = index_ ? index_->lines() : 0;
    report["duplicates"] = index_ ? index_->duplicates() : 0;
    return report;
  }

 private:
  std::filesystem::path path_;
  ReadRoots roots_;
  std::optional<GenerationIndex> index_;
  std::vector<Finished> ready_;
  double seconds_ = 0;
};

}  // namespace

std::unique_ptr<Engine> MakeReplayEngine(const EngineOptions& options) {
  return std::make_unique<ReplayEngine>(options);
}

}  // namespace evald
