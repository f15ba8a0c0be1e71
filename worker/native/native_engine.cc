#include "worker/native/native_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "base/cpu_name.h"
#include "base/memory_limits.h"
#include "base/text.h"
#include "evald/error.h"
#include "tokenizer/tokenizer.h"
#include "worker/native/config.h"
#include "worker/native/cpu.h"
#include "worker/native/cpu_device.h"
#include "worker/native/generation_config.h"
#include "worker/native/job.h"
#include "worker/native/kv_cache.h"
#include "worker/native/model.h"
#include "worker/native/request_plan.h"
#include "worker/native/scheduler.h"
#include "worker/native/thread_pool.h"
#include "worker/native/weights.h"
#include "worker/settings.h"

namespace evald {
namespace {

using namespace native;

constexpr uint64_t kCacheBytes = uint64_t{1} << 30;  // where nothing says what memory there is
constexpr double kCacheShare = 0.25;                 // of what is available
constexpr int64_t kRowsMin = 96;  // per batch, however slow the model: with fewer it is slower yet
// What a batch may take, whatever the budget: the weights are laid out once for all of its rows,
// and with 96 rows instead of 512 that is a fifth of the time.
constexpr int64_t kBatchMicros = 4'000'000;

struct NativeSettings {
  int max_length = 0;     // 0: the checkpoint's
  uint64_t kv_cache = 0;  // bytes; 0: the default
  int concurrency = 128;
  int chunk = 512;
  std::string kernels = "auto";
};

NativeSettings ReadSettings(const Json& json) {
  const Settings settings("native", json,
                          {"max_length", "kv_cache", "concurrency", "chunk", "kernels"});
  NativeSettings read;
  if (settings.Has("max_length")) read.max_length = settings.AtLeast("max_length", 1, 1);
  if (settings.Has("kv_cache")) {
    const Json value = settings.Require<Json>("kv_cache");
    try {
      read.kv_cache = value.is_string() ? ParseBytes(value.get<std::string>())
                                        : settings.Require<uint64_t>("kv_cache");
    } catch (const SettingError&) {
      throw;
    } catch (const Error&) {
      settings.Refuse("kv_cache", "a size such as 2GiB");
    }
    if (read.kv_cache == 0) settings.Refuse("kv_cache", "a size of more than 0");
  }
  read.concurrency = settings.AtLeast("concurrency", 1, read.concurrency);
  read.chunk = settings.AtLeast("chunk", 1, read.chunk);
  read.kernels = settings.Get<std::string>("kernels", read.kernels);
  try {
    SelectKernels(read.kernels);
  } catch (const Error& e) {
    const size_t colon = e.message().find(": ");  // after the name of the key
    throw SettingError("engine 'native'", "kernels", e.message().substr(colon + 2), e.remedy());
  }
  return read;
}

// Everything that belongs to one loaded checkpoint, in the order in which it depends on each other.
struct Loaded {
  Loaded(const std::filesystem::path& directory, const NativeSettings& settings,
         const Kernels& kernels, uint64_t seed, ThreadPool* pool)
      : config(ReadModelConfig(directory)),
        weights(directory, config),
        defaults(ReadGenerationDefaults(directory, config)),
        tokenizer(Tokenizer::Load(directory)),
        max_length(MaxLength(directory, settings)),
        device(config, kernels, pool),
        cache(&device, CacheBytes(settings, pool->threads())),
        model(config, weights, &device),
        scheduler({settings.concurrency}, &model, &cache) {
    context.tokenizer = tokenizer.get();
    context.eos_ids = defaults.eos_ids;
    context.seed = seed;
    limits.max_length = max_length;
    limits.vocab_size = config.vocab_size;
    limits.prefix_token = tokenizer->bos_id() >= 0 ? tokenizer->bos_id() : tokenizer->eos_id();
  }

  int MaxLength(const std::filesystem::path& directory, const NativeSettings& settings) const {
    if (settings.max_length > config.max_positions) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("engine 'native': max_length: found {}, expected at most {} "
                              "(max_position_embeddings of {}{})",
                              settings.max_length, config.max_positions, directory.string(),
                              config.rope.type == RopeType::kDynamic
                                  ? "; rope scaling 'dynamic' is not served beyond it"
                                  : ""));
    }
    return settings.max_length > 0 ? settings.max_length : static_cast<int>(config.max_positions);
  }

  // As this worker's share of the processors is its share of the memory. Most is left to what is
  // staged next, and to metrics.
  static uint64_t DefaultCacheBytes(int threads) {
    const auto available = static_cast<double>(AvailableMemory());
    const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    const auto share =
        static_cast<uint64_t>(available * kCacheShare * std::min(threads, cores) / cores);
    return share > 0 ? share : kCacheBytes;
  }

  uint64_t CacheBytes(const NativeSettings& settings, int threads) const {
    const uint64_t page = device.page_bytes();
    if (settings.kv_cache == 0) return std::max(DefaultCacheBytes(threads), page);
    if (settings.kv_cache < page) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("engine 'native': kv_cache: found {}, expected at least {} (one page "
                              "of {} tokens)",
                              HumanBytes(settings.kv_cache), HumanBytes(page), kPagePositions));
    }
    return settings.kv_cache;
  }

  ModelConfig config;
  ModelWeights weights;
  GenerationDefaults defaults;
  std::unique_ptr<Tokenizer> tokenizer;
  int max_length;
  CpuDevice device;
  KvCache cache;
  Model model;
  JobContext context;
  PlanLimits limits;
  std::unordered_map<uint64_t, std::unique_ptr<Job>> jobs;  ///< by tag
  Scheduler scheduler;
};

class NativeEngine : public Engine {
 public:
  explicit NativeEngine(const EngineOptions& options)
      : settings_(ReadSettings(options.settings)),
        kernels_(SelectKernels(settings_.kernels)),
        seed_(options.seed),
        pool_(std::max(1, options.threads)),
        cpu_(CpuName()) {}

  EngineInfo Info() const override {
    EngineInfo info;
    info.name = "native";
    info.version = fmt::format("1 ({})", kernels_.name);
    info.kinds = {RequestKind::kGenerateUntil, RequestKind::kLoglikelihood,
                  RequestKind::kLoglikelihoodRolling};
    info.max_length = loaded_ == nullptr ? 0 : loaded_->max_length;
    info.deterministic = true;
    info.wants_tokens = true;
    info.concurrency = settings_.concurrency;
    info.device = fmt::format("native, {}, {} threads, {}", cpu_.empty() ? "unknown CPU" : cpu_,
                              pool_.threads(), kernels_.name);
    return info;
  }

  void Load(const std::filesystem::path& directory) override {
    if (pending() > 0) throw Error(ErrorKind::kInternal, "Load while requests are pending");
    const int64_t begin = MonotonicMicros();
    loaded_.reset();
    finished_.clear();
    loaded_ = std::make_unique<Loaded>(directory, settings_, kernels_, seed_, &pool_);
    report_ = {{"bytes", loaded_->weights.mapped_bytes()},
               {"seconds", static_cast<double>(MonotonicMicros() - begin) * 1e-6},
               {"kernels", kernels_.name},
               {"threads", pool_.threads()},
               {"max_length", loaded_->max_length},
               {"kv_cache",
                static_cast<uint64_t>(loaded_->cache.capacity()) * loaded_->cache.page_bytes()}};
  }

  void Submit(uint64_t tag, Request request) override {
    if (loaded_ == nullptr) throw Error(ErrorKind::kInternal, "Submit before Load");
    if (request.context_tokens.empty() && request.continuation_tokens.empty()) {
      EncodeRequest(*loaded_->tokenizer, &request);
    }
    const std::string name = RequestName(request);
    if (request.kind == RequestKind::kGenerateUntil && !loaded_->defaults.unserved.empty()) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: {} is not served by the native engine", name,
                              loaded_->defaults.unserved),
                  "remove the setting, or use engine: openai");
    }
    RequestPlan plan = PlanRequest(request, loaded_->limits);
    auto job = std::make_unique<Job>(loaded_->context, tag, std::move(request), std::move(plan));
    std::vector<std::unique_ptr<Sequence>> sequences = job->MakeSequences();
    try {
      for (const auto& sequence : sequences) loaded_->scheduler.CheckFits(*sequence);
    } catch (Error& e) {
      e.AddContext(name);
      throw;
    }
    for (auto& sequence : sequences) loaded_->scheduler.Add(std::move(sequence));
    if (job->done()) {
      finished_.push_back({tag, job->Finish()});
    } else {
      loaded_->jobs.emplace(tag, std::move(job));
    }
  }

  std::vector<Finished> Step(std::chrono::milliseconds budget) override {
    const int64_t begin = MonotonicMicros();
    const int64_t end = begin + budget.count() * 1000;
    int64_t now = begin;
    try {
      while (finished_.empty() && pending() > 0) {
        const int64_t rows = loaded_->scheduler.Compute(RowsOfBatch());
        CollectFinished();
        const int64_t after = MonotonicMicros();
        if (rows > 0)
          micros_per_row_ = static_cast<double>(after - now) / static_cast<double>(rows);
        now = after;
        if (now >= end) break;
      }
    } catch (...) {
      CancelAll();
      throw;
    }
    return std::exchange(finished_, {});
  }

  size_t pending() const override {
    return finished_.size() + (loaded_ == nullptr ? 0 : loaded_->jobs.size());
  }

  void CancelAll() override {
    finished_.clear();
    if (loaded_ == nullptr) return;
    loaded_->scheduler.Clear();
    loaded_->jobs.clear();
  }

  Json LoadReport() const override { return report_; }

 private:
  // As many rows as may be computed in what a batch may take; never changes a number.
  int64_t RowsOfBatch() const {
    const auto least = std::min<int64_t>(kRowsMin, settings_.chunk);
    if (micros_per_row_ <= 0) return least;
    const auto rows = static_cast<int64_t>(static_cast<double>(kBatchMicros) / micros_per_row_);
    return std::clamp<int64_t>(rows, least, settings_.chunk);
  }

  void CollectFinished() {
    for (auto it = loaded_->jobs.begin(); it != loaded_->jobs.end();) {
      if (it->second->done()) {
        finished_.push_back({it->first, it->second->Finish()});
        it = loaded_->jobs.erase(it);
      } else {
        ++it;
      }
    }
  }

  NativeSettings settings_;
  const Kernels& kernels_;
  uint64_t seed_;
  ThreadPool pool_;
  std::string cpu_;
  std::unique_ptr<Loaded> loaded_;
  std::vector<Finished> finished_;
  Json report_ = Json::object();
  double micros_per_row_ = 0;  ///< of the last batch
};

}  // namespace

std::unique_ptr<Engine> MakeNativeEngine(const EngineOptions& options) {
  return std::make_unique<NativeEngine>(options);
}

}  // namespace evald
