#include "base/device_name.h"

#include "base/text.h"

namespace evald {

bool IsGpu(const std::string& device) { return device.starts_with(kGpuPrefix); }

std::vector<std::string> GpuUuids(const std::string& device) {
  if (!IsGpu(device)) return {};
  return Split(device.substr(std::string(kGpuPrefix).size()), '+');
}

std::vector<std::string> PartsOf(const std::string& device) {
  if (!IsGpu(device)) return {device};
  std::vector<std::string> parts = GpuUuids(device);
  for (std::string& part : parts) part.insert(0, kGpuPrefix);
  return parts;
}

std::string GpuGroup(const std::vector<std::string>& gpus) {
  std::vector<std::string> uuids;
  for (const std::string& gpu : gpus) {
    for (std::string& uuid : GpuUuids(gpu)) uuids.push_back(std::move(uuid));
  }
  return kGpuPrefix + Join(uuids, "+");
}

}  // namespace evald
