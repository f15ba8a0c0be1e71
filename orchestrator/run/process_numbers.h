#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "orchestrator/schedule/lease_table.h"

namespace evald {

/// The numbers under which a run's machine knows the fleet's processes. A process keeps its number
/// for as long as the run is there.
class ProcessNumbers {
 public:
  Holder Of(const std::string& process) {
    const auto [found, fresh] = numbers_.try_emplace(process, static_cast<Holder>(names_.size()));
    if (fresh) names_.push_back(process);
    return found->second;
  }
  const std::string& NameOf(Holder number) const { return names_.at(static_cast<size_t>(number)); }

 private:
  std::unordered_map<std::string, Holder> numbers_;
  std::vector<std::string> names_;
};

}  // namespace evald
