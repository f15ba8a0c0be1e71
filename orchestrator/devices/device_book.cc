#include "orchestrator/devices/device_book.h"

#include <fmt/format.h>

namespace evald {

bool DeviceBook::Failed(const std::string& device, const std::string& cause, int64_t now) {
  State& state = devices_[device];
  if (state.aside) return false;
  state.failures.push_back(now);
  while (now - state.failures.front() > limits_.window_us) state.failures.pop_front();
  if (static_cast<int>(state.failures.size()) < limits_.failures_max) return false;
  state.aside = fmt::format(
      "it failed {} times within {} minutes without finishing a trial, the last time: {}",
      state.failures.size(), limits_.window_us / 60'000'000, cause);
  return true;
}

void DeviceBook::Finished(const std::string& device) {
  const auto found = devices_.find(device);
  if (found != devices_.end() && !found->second.aside) devices_.erase(found);
}

std::optional<std::string> DeviceBook::aside(const std::string& device) const {
  const auto found = devices_.find(device);
  return found == devices_.end() ? std::nullopt : found->second.aside;
}

}  // namespace evald
