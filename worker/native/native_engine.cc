#include "worker/native/native_engine.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "evald/error.h"
#include "tokenizer/tokenizer.h"
#include "worker/native/config.h"
#include "worker/native/cpu_backend.h"
#include "worker/native/job.h"
#include "worker/native/model.h"
#include "worker/native/request_plan.h"
#include "worker/native/scheduler.h"
#include "worker/native/weights.h"

namespace evald {
namespace {

using namespace native;

// The parts of a checkpoint, read in the order of their dependencies.
struct Checkpoint {
  Checkpoint(const std::filesystem::path& directory, const NativeSettings& settings)
      : config(ReadModelConfig(directory)),
        weights(directory, config),
        tokenizer(Tokenizer::Load(directory)),
        max_length(MaxLength(directory, settings)) {
    limits.generation = GenerationConfig::Read(directory, settings.generation_config);
    limits.max_length = max_length;
    if (config.rope.type == RopeType::kDynamic) limits.positions_max = config.max_positions;
    limits.generation_positions = config.generation_positions;
    limits.vocab_size = config.vocab_size;
    limits.prefix_token = tokenizer->bos_id() >= 0 ? tokenizer->bos_id() : tokenizer->eos_id();
  }

  int MaxLength(const std::filesystem::path& directory, const NativeSettings& settings) const {
    try {
      return static_cast<int>(ContextOf(config, settings.max_length, directory.string()));
    } catch (Error& error) {
      throw error.AddContext("engine 'native': max_length");
    }
  }

  ModelConfig config;
  ModelWeights weights;
  std::unique_ptr<Tokenizer> tokenizer;
  int max_length;
  PlanLimits limits;
};

// The objects that answer requests once a checkpoint is loaded.
struct Answering {
  Answering(const Checkpoint& checkpoint, Backend* backend, uint64_t seed)
      : model(checkpoint.config, checkpoint.weights, backend->device()),
        scheduler({backend->slots()}, &model, backend->cache()) {
    context.tokenizer = checkpoint.tokenizer.get();
    context.seed = seed;
  }

  Model model;
  JobContext context;
  std::unordered_map<uint64_t, std::unique_ptr<Job>> jobs;  ///< by tag
  Scheduler scheduler;
};

class NativeEngine : public Engine {
 public:
  NativeEngine(std::unique_ptr<Backend> backend, const NativeSettings& settings, uint64_t seed)
      : backend_(std::move(backend)), settings_(settings), seed_(seed) {}

  EngineInfo Info() const override {
    EngineInfo info;
    info.name = "native";
    info.kinds = {RequestKind::kGenerateUntil, RequestKind::kLoglikelihood,
                  RequestKind::kLoglikelihoodRolling};
    info.max_length = answering_ ? checkpoint_->max_length : 0;
    info.wants_tokens = true;
    backend_->Describe(&info);
    return info;
  }

  void Follow(const std::filesystem::path& staging) override {
    answering_.reset();
    checkpoint_.reset();
    finished_.clear();
    backend_->Follow(staging);
  }

  void Load(const std::filesystem::path& directory) override {
    if (pending() > 0) throw Error(ErrorKind::kInternal, "Load while requests are pending");
    const int64_t begin = MonotonicMicros();
    answering_.reset();
    checkpoint_.reset();
    finished_.clear();
    checkpoint_.emplace(directory, settings_);
    try {
      backend_->Load(directory, checkpoint_->config, checkpoint_->weights);
    } catch (const Error& e) {
      NoteBreak(e);
      throw;
    }
    answering_.emplace(*checkpoint_, backend_.get(), seed_);
    const KvCache& cache = *backend_->cache();
    report_ = backend_->LoadReport();
    report_["seconds"] = static_cast<double>(MonotonicMicros() - begin) * 1e-6;
    report_["max_length"] = checkpoint_->max_length;
    report_["kv_cache"] = static_cast<uint64_t>(cache.capacity()) * cache.page_bytes();
  }

  void Submit(uint64_t tag, Request request) override {
    Begin(tag, std::move(request), std::nullopt);
  }

  bool reports_tokens() const override { return true; }

  void SubmitWatched(uint64_t tag, Request request, TokenWatch watch) override {
    if (request.kind == RequestKind::kLoglikelihoodRolling)
      throw Error(ErrorKind::kInternal, "the windows of a rolling request have no order");
    Begin(tag, std::move(request), std::move(watch));
  }

  bool Cancel(uint64_t tag) override {
    if (std::erase_if(finished_, [&](const Finished& f) { return f.tag == tag; }) > 0) return true;
    if (!answering_ || answering_->jobs.erase(tag) == 0) return false;
    answering_->scheduler.Cancel(tag);
    return true;
  }

  std::vector<Finished> Step(std::chrono::milliseconds budget) override {
    const int64_t begin = MonotonicMicros();
    const int64_t end = begin + budget.count() * 1000;
    int64_t now = begin;
    try {
      while (finished_.empty() && pending() > 0) {
        const int64_t rows = answering_->scheduler.Compute(backend_->RowsOfBatch());
        CollectFinished();
        const int64_t after = MonotonicMicros();
        if (rows > 0) backend_->Computed(rows, after - now);
        now = after;
        if (now >= end) break;
      }
    } catch (const Error& e) {
      NoteBreak(e);
      CancelAll();
      throw;
    } catch (...) {
      CancelAll();
      throw;
    }
    return std::exchange(finished_, {});
  }

  size_t pending() const override {
    return finished_.size() + (answering_ ? answering_->jobs.size() : 0);
  }

  void CancelAll() override {
    finished_.clear();
    if (!answering_) return;
    answering_->scheduler.Clear();
    answering_->jobs.clear();
  }

  Json LoadReport() const override { return report_; }
  Json WorkReport() const override {
    if (!answering_) return Json::object();
    Json report = backend_->WorkReport();
    report["rows_computed"] = answering_->scheduler.rows_computed();
    report["rows_reused"] = answering_->scheduler.rows_reused();
    return report;
  }
  LoadProgress Loading() const override { return backend_->Pulled(); }
  std::optional<std::string> Broken() const override { return broken_; }

 private:
  void Begin(uint64_t tag, Request request, std::optional<TokenWatch> watch) {
    if (!answering_) throw Error(ErrorKind::kInternal, "Submit before Load");
    if (request.context_tokens.empty() && request.continuation_tokens.empty()) {
      EncodeRequest(*checkpoint_->tokenizer, &request);
    }
    const std::string name = RequestName(request);
    RequestPlan plan = PlanRequest(request, checkpoint_->limits);
    std::unique_ptr<Job> job;
    std::vector<std::unique_ptr<Sequence>> sequences;
    try {
      job = std::make_unique<Job>(answering_->context, tag, std::move(request), std::move(plan),
                                  std::move(watch));
      sequences = job->MakeSequences();
      for (const auto& sequence : sequences) answering_->scheduler.CheckFits(*sequence);
    } catch (Error& e) {
      e.AddContext(name);
      throw;
    }
    for (auto& sequence : sequences) answering_->scheduler.Add(std::move(sequence));
    if (job->done()) {
      finished_.push_back(job->Finish());
    } else {
      answering_->jobs.emplace(tag, std::move(job));
    }
  }

  void NoteBreak(const Error& error) {
    if (!broken_ && backend_->Breaks(error)) broken_ = error.what();
  }

  void CollectFinished() {
    for (auto it = answering_->jobs.begin(); it != answering_->jobs.end();) {
      if (it->second->done()) {
        finished_.push_back(it->second->Finish());
        it = answering_->jobs.erase(it);
      } else {
        ++it;
      }
    }
  }

  std::optional<Checkpoint> checkpoint_;
  std::unique_ptr<Backend> backend_;
  NativeSettings settings_;
  uint64_t seed_;
  std::optional<Answering> answering_;  ///< absent until a Load has succeeded
  std::vector<Finished> finished_;
  Json report_ = Json::object();
  std::optional<std::string> broken_;
};

}  // namespace

std::unique_ptr<Engine> MakeNativeEngineOn(std::unique_ptr<Backend> backend,
                                           const NativeSettings& settings, uint64_t seed) {
  return std::make_unique<NativeEngine>(std::move(backend), settings, seed);
}

std::unique_ptr<Engine> MakeNativeEngine(const EngineOptions& options) {
  const NativeSettings settings = ReadNativeSettings(options.settings);
  return MakeNativeEngineOn(MakeCpuBackend(options, settings), settings, options.seed);
}

}  // namespace evald
