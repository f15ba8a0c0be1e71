#include "orchestrator/devices/device_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/log.h"
#include "base/text.h"
#include "engines/engines.h"
#include "evald/error.h"
#include "orchestrator/devices/programs.h"

namespace evald {
namespace {

constexpr const char* kAuto = "auto";
constexpr const char* kAllGpus = "cuda:all";
constexpr size_t kNameBytesMax = 100;
constexpr const char* kExpected = "expected auto, cuda:all, cuda:<uuid> or cpu:<number>";

bool IsCpu(const std::string& device) {
  const std::string number = device.starts_with("cpu:") ? device.substr(4) : "";
  return !number.empty() && number.size() <= 4 &&
         std::all_of(number.begin(), number.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

// The driver's form of UUIDs: of GPUs ("GPU-") and of parts of GPUs ("MIG-").
bool IsNamedGpu(const std::string& device) {
  const std::string uuid = IsGpu(device) ? device.substr(5) : "";
  return (uuid.starts_with("GPU-") || uuid.starts_with("MIG-")) && uuid.size() <= kNameBytesMax &&
         std::all_of(uuid.begin(), uuid.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '-'; });
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

}  // namespace

std::string WrongWithDevices(const std::vector<std::string>& asked) {
  if (asked.empty()) return std::string("found an empty list, ") + kExpected;
  std::set<std::string> seen;
  for (const std::string& device : asked) {
    const bool alone = device == kAuto || device == kAllGpus;
    if (alone && asked.size() > 1) return fmt::format("'{}' stands alone", device);
    if (!alone && !IsCpu(device) && !IsNamedGpu(device))
      return fmt::format("found '{}', {}", device, kExpected);
    if (!seen.insert(device).second) return fmt::format("'{}' is there twice", device);
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

std::vector<std::string> ChooseDevices(const std::vector<std::string>& asked,
                                       const std::string& engine, int cpu_workers,
                                       const std::function<GpuListing()>& list) {
  const std::string& first = asked.front();
  const bool uses_gpus = engine == kAnyEngine || EngineNamed(engine).gpus != GpuUse::kNone;
  if (first == kAuto) {
    if (!uses_gpus) return CpuDevices(cpu_workers);
    const GpuListing listing = list();
    if (listing.broken) log::Warn("GPUs are not used: {}", listing.missing);
    return listing.gpus.empty() ? CpuDevices(cpu_workers) : Ids(listing.gpus);
  }
  if (!IsGpu(first)) return asked;
  if (!uses_gpus) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("device {}: engine '{}' computes on no GPU of this host", first, engine),
        "leave 'workers.devices' out");
  }
  const GpuListing listing = list();
  if (first == kAllGpus) {
    if (listing.gpus.empty()) ThrowNoGpu(first, listing);
    return Ids(listing.gpus);
  }
  for (const std::string& device : asked) {
    const bool there = std::any_of(listing.gpus.begin(), listing.gpus.end(),
                                   [&](const Gpu& gpu) { return gpu.id == device; });
    if (!there) ThrowNoGpu(device, listing);
  }
  return asked;
}

}  // namespace evald
