#include "orchestrator/schedule/dispatch.h"

#include <algorithm>
#include <tuple>

namespace evald {

std::optional<int64_t> ChooseRun(const std::vector<DispatchRun>& runs, const DeviceUse& use,
                                 int64_t current) {
  if (runs.empty()) return std::nullopt;
  const auto at = std::find_if(runs.begin(), runs.end(),
                               [&](const DispatchRun& run) { return run.number == current; });
  const std::string* holder = at == runs.end() ? nullptr : &at->user;
  const auto rank = [&](const DispatchRun& run) {
    const auto used = use.find(run.user);
    double share = used == use.end() ? 0 : used->second;
    if (holder != nullptr && run.user == *holder) share -= kDispatchQuantumSeconds;
    return std::tuple(-run.priority, share, run.number != current, run.number);
  };
  return std::min_element(runs.begin(), runs.end(),
                          [&](const auto& a, const auto& b) { return rank(a) < rank(b); })
      ->number;
}

}  // namespace evald
