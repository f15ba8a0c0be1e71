#include "orchestrator/devices/device_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/device_name.h"
#include "base/log.h"
#include "base/text.h"
#include "engines/engines.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr const char* kAuto = "auto";
constexpr const char* kAllGpus = "cuda:all";
constexpr const char* kNoDevices = "none";
constexpr size_t kNameBytesMax = 100;
constexpr const char* kExpected =
    "expected auto, cuda:all, cuda:<uuid>, cuda:<uuid>+<uuid>, cpu:<number> or none";

bool IsCpu(const std::string& device) {
  const std::string number = device.starts_with("cpu:") ? device.substr(4) : "";
  return !number.empty() && number.size() <= 4 &&
         std::all_of(number.begin(), number.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

// The driver's form of UUIDs: of GPUs ("GPU-") and of parts of GPUs ("MIG-").
bool IsUuid(const std::string& uuid) {
  return (uuid.starts_with("GPU-") || uuid.starts_with("MIG-")) && uuid.size() <= kNameBytesMax &&
         std::all_of(uuid.begin(), uuid.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '-'; });
}

bool AreNamedGpus(const std::string& device) {
  const std::vector<std::string> uuids = GpuUuids(device);
  return !uuids.empty() && std::all_of(uuids.begin(), uuids.end(), IsUuid);
}

std::vector<std::string> Ids(const std::vector<Gpu>& gpus) {
  std::vector<std::string> ids;
  for (const Gpu& gpu : gpus) ids.push_back(gpu.id);
  return ids;
}

[[noreturn]] void ThrowNoGpu(const std::string& asked, const GpuListing& listing) {
  throw Error(ErrorKind::kInfrastructure,
              listing.gpus.empty()
                  ? fmt::format("device {}: there is no GPU: {}", asked, listing.missing)
                  : fmt::format("device {} is not there; visible: {}", asked,
                                Join(Ids(listing.gpus), ", ")),
              "'evald doctor' says what this machine offers");
}

void RefuseGroupsOfProcessors(const DeviceRequest& request) {
  if (request.per_worker == 1) return;
  throw Error(ErrorKind::kUsage,
              fmt::format("{} devices for each worker: device {} is no GPU", request.per_worker,
                          request.devices.front()),
              "'threads' gives a worker more of the processors");
}

// Groups are named, or made by their size, and not both.
void RefuseGroupsOfGroups(const DeviceRequest& request) {
  for (const std::string& device : request.devices) {
    if (request.per_worker == 1 || GpuUuids(device).size() < 2) continue;
    throw Error(ErrorKind::kUsage,
                fmt::format("{} devices for each worker: device {} is a group already",
                            request.per_worker, device),
                "leave 'devices_per_worker' out, or name single GPUs");
  }
}

// Refuses GPUs that the engine cannot use. `use` is the engine's.
void RefuseUnfit(const DeviceRequest& request, const std::string& engine, GpuUse use) {
  const std::string& first = request.devices.front();
  if (use == GpuUse::kNone) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("device {}: engine '{}' computes on no GPU of this host", first, engine),
        "leave 'workers.devices' out");
  }
  const bool several = request.per_worker > 1 ||
                       std::any_of(request.devices.begin(), request.devices.end(),
                                   [](const auto& device) { return GpuUuids(device).size() > 1; });
  RefuseGroupsOfGroups(request);
  if (!several || use == GpuUse::kServer) return;
  throw Error(ErrorKind::kUsage,
              fmt::format("several GPUs for a worker: engine '{}' computes on one", engine),
              "leave 'devices_per_worker' out, or use an engine with a server, such as vllm");
}

void RequireThere(const std::vector<std::string>& devices, const GpuListing& listing) {
  for (const std::string& device : devices) {
    for (const std::string& id : PartsOf(device)) {
      const bool there = std::any_of(listing.gpus.begin(), listing.gpus.end(),
                                     [&](const Gpu& gpu) { return gpu.id == id; });
      if (!there) ThrowNoGpu(id, listing);
    }
  }
}

// The GPUs of one NUMA node next to each other, if workers have several.
std::vector<Gpu> NearFirst(std::vector<Gpu> gpus, int per_worker) {
  if (per_worker > 1) {
    std::stable_sort(gpus.begin(), gpus.end(), [](const Gpu& one, const Gpu& other) {
      return one.numa_node < other.numa_node;
    });
  }
  return gpus;
}

std::vector<std::string> Grouped(const std::vector<std::string>& gpus, int per_worker) {
  const size_t size = static_cast<size_t>(per_worker);
  if (size == 1) return gpus;
  std::vector<std::string> groups;
  for (size_t begin = 0; begin + size <= gpus.size(); begin += size) {
    const auto from = gpus.begin() + static_cast<std::ptrdiff_t>(begin);
    groups.push_back(GpuGroup({from, from + static_cast<std::ptrdiff_t>(size)}));
  }
  if (groups.empty()) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{} GPUs for each worker: there are only {} ({})", size, gpus.size(),
                            Join(gpus, ", ")),
                "set 'devices_per_worker' to at most this number");
  }
  const size_t used = groups.size() * size;
  if (used < gpus.size()) {
    log::Warn("{} GPUs for each worker: {} are left over and not used: {}", size,
              gpus.size() - used,
              Join({gpus.begin() + static_cast<std::ptrdiff_t>(used), gpus.end()}, ", "));
  }
  return groups;
}

}  // namespace

std::string WrongWithDevices(const std::vector<std::string>& asked) {
  if (asked.empty()) return std::string("found an empty list, ") + kExpected;
  std::set<std::string> seen;
  for (const std::string& device : asked) {
    const bool alone = device == kAuto || device == kAllGpus || device == kNoDevices;
    if (alone && asked.size() > 1) return fmt::format("'{}' stands alone", device);
    if (!alone && !IsCpu(device) && !AreNamedGpus(device))
      return fmt::format("found '{}', {}", device, kExpected);
    for (const std::string& part : IsGpu(device) ? GpuUuids(device) : std::vector{device}) {
      if (!seen.insert(part).second) return fmt::format("'{}' is there twice", part);
    }
    if (IsGpu(device) != IsGpu(asked.front())) {
      return "names a CPU and a GPU, whose numbers differ in the last bits: a score must not "
             "depend on the device that computed it";
    }
  }
  return "";
}

std::vector<std::string> CpuDevices(int count) {
  std::vector<std::string> devices;
  for (int i = 0; i < count; ++i) devices.push_back(fmt::format("cpu:{}", i));
  return devices;
}

std::vector<std::string> ChooseDevices(const DeviceRequest& request, const std::string& engine,
                                       const std::function<GpuListing()>& list) {
  const std::string& first = request.devices.front();
  if (first == kNoDevices) return {};
  const GpuUse use = engine == kAnyEngine ? GpuUse::kServer : EngineNamed(engine).gpus;
  if (first == kAuto && use == GpuUse::kNone) return CpuDevices(request.cpu_workers);
  if (first != kAuto && !IsGpu(first)) {
    RefuseGroupsOfProcessors(request);
    return request.devices;
  }
  RefuseUnfit(request, engine, use);
  const GpuListing listing = list();
  if (first == kAuto && listing.broken) log::Warn("GPUs are not used: {}", listing.missing);
  if (listing.gpus.empty() && first == kAuto && request.per_worker == 1)
    return CpuDevices(request.cpu_workers);
  if (listing.gpus.empty()) ThrowNoGpu(first, listing);
  const bool named = first != kAuto && first != kAllGpus;
  if (named) RequireThere(request.devices, listing);
  return Grouped(named ? request.devices : Ids(NearFirst(listing.gpus, request.per_worker)),
                 request.per_worker);
}

}  // namespace evald
