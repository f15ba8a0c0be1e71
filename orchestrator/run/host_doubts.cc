#include "orchestrator/run/host_doubts.h"

#include <utility>

namespace evald {

bool HostDoubts::Refused(const Witness& from, const Refusal& refusal) {
  if (from.trusted || believed_.count(from.host) > 0) return true;
  Said& said = refused_[refusal.what];
  said.owners.insert(from.owner);
  said.refusal = refusal;
  if (said.owners.size() > 1 && refusal.kind != ErrorKind::kInfrastructure) return true;
  doubted_.insert(from.host);
  return false;
}

bool HostDoubts::Failed(const Witness& from) {
  if (from.trusted || believed_.count(from.host) > 0) return true;
  if (++failures_[from.host] >= kFailuresMax) doubted_.insert(from.host);
  return false;
}

void HostDoubts::Stalled(const Witness& of) {
  if (of.trusted) return;
  doubted_.insert(of.host);
  std::set<std::string>& hosts = stalled_[of.owner];
  hosts.insert(of.host);
  if (hosts.size() > 1) doubted_owners_.insert(of.owner);
}

std::vector<HostDoubts::Refusal> HostDoubts::Settle() {
  believed_.merge(doubted_);
  doubted_.clear();
  doubted_owners_.clear();
  stalled_.clear();
  std::vector<Refusal> refusals;
  for (auto& [what, said] : std::exchange(refused_, {}))
    refusals.push_back(std::move(said.refusal));
  return refusals;
}

}  // namespace evald
