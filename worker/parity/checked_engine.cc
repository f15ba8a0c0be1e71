#include "worker/parity/checked_engine.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/log.h"
#include "evald/error.h"
#include "worker/native/config.h"
#include "worker/native/families/family.h"
#include "worker/parity/parity_check.h"
#include "worker/parity/passed.h"
#include "worker/parity/scores_of.h"

namespace evald::parity {
namespace {

class CheckedEngine : public Engine {
 public:
  CheckedEngine(std::unique_ptr<Engine> engine, const CheckSettings& settings)
      : engine_(std::move(engine)),
        settings_(settings),
        check_(settings.budget, settings.threads),
        passed_(settings.memory) {}

  EngineInfo Info() const override {
    EngineInfo info = engine_->Info();
    info.parity = verdict_;
    return info;
  }
  void RequirePrograms() const override { engine_->RequirePrograms(); }
  void Load(const std::filesystem::path& directory) override;
  void Follow(const std::filesystem::path& staging) override { engine_->Follow(staging); }
  void Submit(uint64_t tag, Request request) override { engine_->Submit(tag, std::move(request)); }
  bool reports_tokens() const override { return engine_->reports_tokens(); }
  void SubmitWatched(uint64_t tag, Request request, TokenWatch watch) override {
    engine_->SubmitWatched(tag, std::move(request), std::move(watch));
  }
  bool Cancel(uint64_t tag) override { return engine_->Cancel(tag); }
  std::vector<Finished> Step(std::chrono::milliseconds budget) override {
    return engine_->Step(budget);
  }
  size_t pending() const override { return engine_->pending(); }
  void CancelAll() override { engine_->CancelAll(); }
  std::optional<ServedApi> Api() override { return engine_->Api(); }
  Json LoadReport() const override {
    Json report = engine_->LoadReport();
    report["parity"] = report_;
    return report;
  }
  Json WorkReport() const override { return engine_->WorkReport(); }
  LoadProgress Loading() const override { return engine_->Loading(); }
  std::optional<std::string> Broken() const override { return wrong_ ? wrong_ : engine_->Broken(); }

 private:
  std::string Kind(const std::filesystem::path& directory, NumberType type) const;
  void Take(const Report& report, const std::string& kind);

  std::unique_ptr<Engine> engine_;
  CheckSettings settings_;
  ParityCheck check_;
  Passed passed_;
  std::string verdict_;
  Json report_ = Json::object();
  std::optional<std::string> wrong_;
};

// All that the verdict depends on, but for the weights' values.
std::string CheckedEngine::Kind(const std::filesystem::path& directory, NumberType type) const {
  const EngineInfo info = engine_->Info();
  const native::ModelConfig config = native::ReadModelConfig(directory);
  return fmt::format("{}; {}; {}; {}; type {}", info.device, info.driver, info.version,
                     config.family->architecture, static_cast<int>(type));
}

void CheckedEngine::Load(const std::filesystem::path& directory) {
  verdict_.clear();
  report_ = Json::object();
  engine_->Load(directory);
  const NumberType type = TypeOfWeights(directory);
  const std::string kind = Kind(directory, type);
  if (settings_.budget.count() > 0 && passed_.Has(kind)) {
    Report report;
    report.reason = "this kind of device has passed with such checkpoints before";
    return Take(report, kind);
  }
  check_.Begin(directory, type, false);
  const auto ask = [this](const std::vector<ScoreWindow>& windows) {
    const std::vector<double> scores = ScoresOf(engine_.get(), windows);
    return std::vector<std::optional<double>>(scores.begin(), scores.end());
  };
  Take(check_.Check(ask), kind);
}

void CheckedEngine::Take(const Report& report, const std::string& kind) {
  report_ = report.ToJson();
  verdict_ = report.Summary();
  if (report.outcome == Report::Outcome::kDiffers) {
    wrong_ = fmt::format(
        "this device computes otherwise than evald's own engine on the processor "
        "({}): {}",
        kind, report.reason);
    throw Error(ErrorKind::kInfrastructure, *wrong_,
                report.causes +
                    "; the engine vllm may compute this checkpoint: "
                    "`engine: {name: vllm}` (pip install 'vllm>=0.32')");
  }
  if (report.outcome == Report::Outcome::kAgrees && report.left_out.empty()) passed_.Add(kind);
  log::Info("parity check: {}", verdict_);
}

}  // namespace

std::unique_ptr<Engine> Checked(std::unique_ptr<Engine> engine, const CheckSettings& settings) {
  return std::make_unique<CheckedEngine>(std::move(engine), settings);
}

}  // namespace evald::parity
