#include "orchestrator/schedule/policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "evald/error.h"

namespace evald {

const std::vector<std::string>& PolicyNames() {
  static const std::vector<std::string> names = {"coupled",     "coupled+staged", "decoupled-fifo",
                                                 "round-robin", "size-split",     "elastic"};
  return names;
}

std::unique_ptr<Policy> MakePolicy(const std::string& name, const LeaseCosts& costs) {
  if (name == "coupled") return MakeCoupledPolicy();
  if (name == "coupled+staged") return MakeCoupledStagedPolicy();
  if (name == "decoupled-fifo") return MakeFifoPolicy();
  if (name == "round-robin") return MakeRoundRobinPolicy();
  if (name == "size-split") return MakeSizeSplitPolicy();
  if (name == "elastic") return MakeElasticPolicy(costs);
  throw Error(ErrorKind::kUsage, fmt::format("there is no policy '{}'", name),
              fmt::format("one of {}", fmt::join(PolicyNames(), ", ")));
}

}  // namespace evald
