#include "worker/native/cpu_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "base/cores.h"
#include "base/cpu_name.h"
#include "base/memory_limits.h"
#include "worker/native/cpu.h"
#include "worker/native/cpu_device.h"
#include "worker/native/thread_pool.h"

namespace evald::native {
namespace {

constexpr int kSlots = 128;
constexpr int kChunk = 512;
constexpr uint64_t kCacheBytes = uint64_t{1} << 30;  // if the available memory is unknown
constexpr double kCacheShare = 0.25;                 // of the available memory
constexpr int64_t kRowsMin = 96;  // per batch, for any model: with fewer rows it is slower still
// The time for a batch, whatever the budget. The weights are laid out once for all of its rows;
// with 96 rows instead of 512 that takes a fifth of the time.
constexpr int64_t kBatchMicros = 4'000'000;

// The worker's share of the available memory is its share of the processors. Most memory is left
// for the next staging and for metrics.
uint64_t DefaultCacheBytes(int threads) {
  const auto available = static_cast<double>(AvailableMemory());
  const int cores = UsableCores();
  const auto share =
      static_cast<uint64_t>(available * kCacheShare * std::min(threads, cores) / cores);
  return share > 0 ? share : kCacheBytes;
}

class CpuBackend : public Backend {
 public:
  CpuBackend(int threads, const NativeSettings& settings)
      : settings_(settings),
        kernels_(SelectKernels(settings.kernels)),
        pool_(threads),
        cpu_(CpuName()) {}

  void Describe(EngineInfo* info) const override {
    info->version = fmt::format("1 ({})", kernels_.name);
    info->deterministic = true;
    info->concurrency = slots();
    info->device = fmt::format("native, {}, {} threads, {}", cpu_.empty() ? "unknown CPU" : cpu_,
                               pool_.threads(), kernels_.name);
  }

  void Load(const std::filesystem::path& /*directory*/, const ModelConfig& config,
            const ModelWeights& weights) override {
    cache_.reset();
    device_.reset();
    device_.emplace(config, kernels_, &pool_);
    const uint64_t page = device_->page_bytes();
    cache_.emplace(&*device_, CacheBudget(settings_, DefaultCacheBytes(pool_.threads()),
                                          HostMemory().total, page));
    report_ = {{"bytes", weights.mapped_bytes()},
               {"kernels", kernels_.name},
               {"threads", pool_.threads()}};
  }

  Device* device() override { return &*device_; }
  KvCache* cache() override { return &*cache_; }
  Json LoadReport() const override { return report_; }
  int slots() const override { return settings_.concurrency.value_or(kSlots); }

  // The number of rows that fit into the time for a batch.
  int64_t RowsOfBatch() const override {
    const int64_t chunk = settings_.chunk.value_or(kChunk);
    const int64_t least = std::min(kRowsMin, chunk);
    if (micros_per_row_ <= 0) return least;
    const auto rows = static_cast<int64_t>(static_cast<double>(kBatchMicros) / micros_per_row_);
    return std::clamp(rows, least, chunk);
  }

  void Computed(int64_t rows, int64_t micros) override {
    micros_per_row_ = static_cast<double>(micros) / static_cast<double>(rows);
  }

 private:
  NativeSettings settings_;
  const Kernels& kernels_;
  ThreadPool pool_;
  std::string cpu_;
  std::optional<CpuDevice> device_;
  std::optional<KvCache> cache_;
  Json report_ = Json::object();
  double micros_per_row_ = 0;  ///< of the last batch
};

}  // namespace

std::unique_ptr<Backend> MakeCpuBackend(const EngineOptions& options,
                                        const NativeSettings& settings) {
  return std::make_unique<CpuBackend>(std::max(1, options.threads), settings);
}

}  // namespace evald::native
