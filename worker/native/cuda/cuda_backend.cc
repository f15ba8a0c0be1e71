#include "worker/native/cuda/cuda_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/device_name.h"
#include "base/log.h"
#include "base/text.h"
#include "worker/native/backend.h"
#include "worker/native/cuda/checkpoint_loader.h"
#include "worker/native/cuda/cuda_device.h"
#include "worker/native/cuda/products.h"
#include "worker/native/cuda/served.h"
#include "worker/native/native_engine.h"
#include "worker/native/native_settings.h"

namespace evald::native::cuda {
namespace {

constexpr int kSlots = 512;  // as many sequences as fit; they share each reading of the weights
constexpr int kChunk = 8192;
constexpr uint64_t kSpareShare = 50;  // 1 in so many bytes of memory stays free for the driver

PullOptions PullOptionsOf(const GpuInfo& gpu, const NativeSettings& settings) {
  PullOptions options;
  options.uuid = gpu.uuid;
  options.threads = settings.copy_threads;
  options.numa_node = gpu.numa_node;
  return options;
}

class CudaBackend : public Backend {
 public:
  CudaBackend(GpuInfo gpu, const NativeSettings& settings)
      : gpu_(std::move(gpu)), settings_(settings), loader_(PullOptionsOf(gpu_, settings)) {}
  // The destructor runs on any thread. On a thread without a current GPU, freeing memory would make
  // a context on the first GPU and take memory from its users.
  ~CudaBackend() override {
    try {
      UseGpu(gpu_.uuid);
    } catch (const std::exception&) {  // the GPU is lost, and its memory with it
    }
  }

  void Describe(EngineInfo* info) const override {
    const char* fast = settings_.fast ? ", fast" : "";
    info->version = fmt::format("1 (cuda, sm_{}{}{})", gpu_.major, gpu_.minor, fast);
    info->deterministic = !settings_.fast;
    info->fast = settings_.fast;
    info->follows = true;
    info->concurrency = slots();
    info->device = fmt::format("native, {}{}", gpu_.name, fast);
    info->device_id = kGpuPrefix + gpu_.uuid;
    info->driver = RuntimeVersions();
  }

  void Follow(const std::filesystem::path& staging) override { loader_.Follow(staging); }

  void Load(const std::filesystem::path& directory, const ModelConfig& config,
            const ModelWeights& weights) override {
    UseGpu(gpu_.uuid);
    bool stays = false;
    try {
      const bool same = device_ && *config_ == config;
      if (!same) {
        LetGo();
        RefuseUnserved(config);
        PrepareProducts(config, weights);  // while the staged checkpoint is pulled
      }
      stays = same && loader_.Keeps(weights);
      if (!stays) LetGo();
      if (stays) device_->Drain();  // a batch whose answers are not wanted may be under way
      loader_.Load(directory, weights);
      if (!stays) MakeDevice(config);
    } catch (const DeviceError& e) {
      if (!e.sticky()) ClearError();
      throw;
    }
    report_ = loader_.Report();
    report_["pull_seconds"] = report_.value("seconds", 0.0);
    report_["device"] = kGpuPrefix + gpu_.uuid;
    report_["swapped"] = stays;
  }

  Device* device() override { return &*device_; }
  KvCache* cache() override { return &*cache_; }
  Json LoadReport() const override { return report_; }
  Json WorkReport() const override { return device_ ? device_->Report() : Json::object(); }
  LoadProgress Pulled() const override {
    const PullProgress& progress = loader_.progress();
    return {static_cast<int64_t>(progress.bytes.load()),
            static_cast<int64_t>(progress.total.load())};
  }

  int slots() const override { return settings_.concurrency.value_or(kSlots); }
  int64_t RowsOfBatch() const override { return settings_.chunk.value_or(kChunk); }
  bool Breaks(const Error& error) const override {
    const auto* device = dynamic_cast<const DeviceError*>(&error);
    return device != nullptr && device->sticky();
  }

 private:
  // Frees all that was built on the weights.
  void LetGo() {
    cache_.reset();
    device_.reset();
  }

  int64_t RowsMax() const { return std::max<int64_t>(RowsOfBatch(), slots()); }

  // Takes seconds, except for known products. Called before the weights are in, so that the device
  // can compute as soon as they are.
  void PrepareProducts(const ModelConfig& config, const ModelWeights& weights) {
    if (!products_) products_ = MakeProducts(settings_.fast);
    const Stream stream;
    products_->Prepare(ProductsOf(config, TypeOfMost(weights), RowsMax()), stream);
  }

  void MakeDevice(const ModelConfig& config) {
    // The checkpoint's own config goes with the next Load
    config_ = std::make_unique<ModelConfig>(config);
    CudaOptions options;
    options.rows_max = RowsMax();
    options.graphs = settings_.graphs;
    options.ahead = settings_.ahead;
    device_.emplace(*config_, &loader_.weights(), products_.get(), options);
    try {
      TakeCache();
    } catch (...) {
      LetGo();
      throw;
    }
  }

  // Takes all of the cache's memory at once, so that no request can run out of it.
  void TakeCache() {
    const DeviceMemory memory = MemoryOfDevice();
    const uint64_t kept = device_->reserve_bytes() + memory.total / kSpareShare;
    const uint64_t free = memory.free > kept ? memory.free - kept : 0;
    cache_.emplace(&*device_, CacheBudget(settings_, free, free, device_->page_bytes()));
    const int64_t wanted = cache_->capacity();
    try {
      cache_->TakeAll();
    } catch (const DeviceError& e) {
      if (e.fault() != DeviceFault::kOutOfMemory || cache_->capacity() == 0) throw;
      ClearError();
      log::Warn("{}{} has room for {} of {} pages of keys and values", kGpuPrefix, gpu_.uuid,
                cache_->capacity(), wanted);
    }
  }

  GpuInfo gpu_;
  NativeSettings settings_;
  CheckpointLoader loader_;
  std::unique_ptr<Products> products_;
  std::unique_ptr<ModelConfig> config_;
  std::optional<CudaDevice> device_;
  std::optional<KvCache> cache_;
  Json report_ = Json::object();
};

}  // namespace

GpuInfo GpuOf(const std::string& device) {
  std::vector<std::string> visible;
  for (const GpuInfo& gpu : ListGpus()) {
    if (device == kGpuPrefix + gpu.uuid) return gpu;
    visible.push_back(kGpuPrefix + gpu.uuid);
  }
  throw Error(ErrorKind::kInfrastructure,
              fmt::format("{} is not there; {}", device,
                          visible.empty() ? fmt::format("no GPU is visible ({})", RuntimeVersions())
                                          : "visible: " + Join(visible, ", ")),
              "'evald doctor' says what is missing");
}

std::unique_ptr<Engine> MakeCudaEngine(const EngineOptions& options) {
  const NativeSettings settings = ReadNativeSettings(options.settings);
  return MakeNativeEngineOn(std::make_unique<CudaBackend>(GpuOf(options.device), settings),
                            settings, options.seed);
}

Json ListDevices() {
  Json devices = Json::array();
  for (const GpuInfo& gpu : ListGpus()) {
    devices.push_back({{"id", kGpuPrefix + gpu.uuid},
                       {"name", gpu.name},
                       {"memory_bytes", gpu.memory_bytes},
                       {"numa_node", gpu.numa_node},
                       {"compute", fmt::format("{}.{}", gpu.major, gpu.minor)}});
  }
  return {{"devices", std::move(devices)}, {"driver", RuntimeVersions()}};
}

}  // namespace evald::native::cuda
