#include "orchestrator/service/workloads.h"

#include <algorithm>

#include "base/hash.h"

namespace evald {

void Workloads::Saw(const std::string& workload, int64_t run, double open_s) {
  Seen& seen = seen_[workload];
  seen.device_s = seen.run == run ? std::max(seen.device_s, open_s) : open_s;
  seen.run = run;
  seen.turn = ++turn_;
  if (seen_.size() > kKept) ForgetOldest();
}

std::optional<double> Workloads::Expected(const std::string& workload) const {
  const auto found = seen_.find(workload);
  if (found == seen_.end()) return std::nullopt;
  return found->second.device_s;
}

void Workloads::ForgetOldest() {
  const auto older = [](const auto& a, const auto& b) { return a.second.turn < b.second.turn; };
  seen_.erase(std::min_element(seen_.begin(), seen_.end(), older));
}

std::string WorkloadOf(const EvalConfig& config) {
  Json deciding = ToJson(config, true);
  deciding.erase("name");
  deciding["checkpoint"] = config.checkpoint.parent_path().string();
  return HashHex(deciding.dump());
}

}  // namespace evald
