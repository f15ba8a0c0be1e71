#include "orchestrator/fleet/source_choice.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace evald {
namespace {

constexpr int64_t kWhole = std::numeric_limits<int64_t>::max();

}  // namespace

void SourceChoice::Join(const std::string& agent, const std::string& owner, bool serves) {
  agents_[agent] = {};
  agents_[agent].owner = owner;
  agents_[agent].serves = serves;
}

void SourceChoice::Leave(const std::string& agent) { agents_.erase(agent); }

void SourceChoice::SetConnected(const std::string& agent, bool connected) {
  const auto found = agents_.find(agent);
  if (found != agents_.end()) found->second.connected = connected;
}

void SourceChoice::Holds(const std::string& agent, const std::string& fingerprint) {
  const auto found = agents_.find(agent);
  if (found != agents_.end()) found->second.holds.insert(fingerprint);
}

void SourceChoice::Done(const std::string& agent, const std::string& fingerprint) {
  const auto found = agents_.find(agent);
  if (found == agents_.end()) return;
  found->second.fetches.erase(fingerprint);
  found->second.holds.insert(fingerprint);
  found->second.wrong.erase(fingerprint);  // it has been fetched anew, and every chunk was checked
}

std::string SourceChoice::Choose(const SourceAsk& ask, int64_t now_us) {
  Forget(now_us);
  const auto found = agents_.find(ask.agent);
  if (found == agents_.end()) return kServiceSource;
  Agent& asker = found->second;
  Fetch& fetch = asker.fetches[ask.fingerprint];
  if (fetch.began_us == 0) fetch.began_us = now_us;
  fetch.heard_us = now_us;
  fetch.have = ask.have;
  // Whoever asks for the checkpoint does not have it, whatever it had before
  asker.holds.erase(ask.fingerprint);
  Note(ask, &asker, &fetch, now_us);
  if (Stands(ask, fetch, now_us)) {
    const std::string better = Better(ask, now_us);
    if (!better.empty()) fetch.source = better;
  } else {
    fetch.source = Best(ask, now_us);
  }
  return fetch.source;
}

// Takes what the asker says of the source that failed it.
void SourceChoice::Note(const SourceAsk& ask, Agent* asker, Fetch* fetch, int64_t now_us) {
  if (ask.fault == SourceFault::kNone || ask.failed.empty()) return;
  fetch->failed.insert(ask.failed);
  if (ask.fault == SourceFault::kUnreachable)
    asker->unreachable[ask.failed] = now_us + kUnreachableMicros;
  const auto source = agents_.find(ask.failed);
  if (source == agents_.end() || source->second.owner != asker->owner) return;
  if (ask.fault == SourceFault::kGone || ask.fault == SourceFault::kWrong)
    source->second.holds.erase(ask.fingerprint);
  if (ask.fault == SourceFault::kWrong) source->second.wrong.insert(ask.fingerprint);
}

// Whether the asker's source is one that it may go on with.
bool SourceChoice::Stands(const SourceAsk& ask, const Fetch& fetch, int64_t now_us) const {
  if (ask.current.empty() || ask.current != fetch.source) return false;
  return ask.current == kServiceSource || MayServe(ask.current, ask, now_us);
}

bool SourceChoice::MayServe(const std::string& source, const SourceAsk& ask, int64_t now_us) const {
  const auto found = agents_.find(source);
  const Agent& asker = agents_.at(ask.agent);
  if (found == agents_.end() || source == ask.agent) return false;
  const Agent& agent = found->second;
  if (!agent.serves || !agent.connected || agent.owner != asker.owner) return false;
  if (agent.wrong.count(ask.fingerprint) > 0 || Has(source, ask.fingerprint) < 0) return false;
  if (asker.fetches.at(ask.fingerprint).failed.count(source) > 0) return false;
  if (asker.unreachable.count(source) > 0 || asker.unreachable.size() >= kUnreachableMax ||
      Unreached(source, now_us) >= kUnreachableMax)
    return false;
  return !IsBelow(source, ask.agent, ask.fingerprint);
}

// The chunks that an agent has: kWhole for all, -1 if it neither has nor fetches the checkpoint.
int64_t SourceChoice::Has(const std::string& agent, const std::string& fingerprint) const {
  const Agent& of = agents_.at(agent);
  if (of.holds.count(fingerprint) > 0) return kWhole;
  const auto fetch = of.fetches.find(fingerprint);
  return fetch == of.fetches.end() || fetch->second.source.empty() ? -1 : fetch->second.have;
}

// Whether `agent` fetches, by way of any number of others, from `top`.
bool SourceChoice::IsBelow(const std::string& agent, const std::string& top,
                           const std::string& fingerprint) const {
  std::string at = agent;
  for (size_t steps = 0; steps <= agents_.size(); ++steps) {
    if (at == top) return true;
    const auto found = agents_.find(at);
    if (found == agents_.end()) return false;
    const auto fetch = found->second.fetches.find(fingerprint);
    if (fetch == found->second.fetches.end()) return false;
    at = fetch->second.source;
  }
  return true;  // a ring, which nobody should join
}

// The number of agents that could not reach this one.
size_t SourceChoice::Unreached(const std::string& agent, int64_t now_us) const {
  return static_cast<size_t>(std::count_if(agents_.begin(), agents_.end(), [&](const auto& other) {
    const auto until = other.second.unreachable.find(agent);
    return until != other.second.unreachable.end() && until->second > now_us;
  }));
}

// The number of fetchers of each source, the asker's own fetch left out. An agent's are those of
// any checkpoint: they share its link.
SourceChoice::Loads SourceChoice::LoadsFor(const SourceAsk& ask) const {
  Loads loads;
  for (const auto& [name, agent] : agents_) {
    for (const auto& [of, fetch] : agent.fetches) {
      if (name != ask.agent || of != ask.fingerprint) ++loads[fetch.source];
    }
  }
  return loads;
}

int SourceChoice::LoadOf(const Loads& loads, const std::string& source) {
  const auto found = loads.find(source);
  return found == loads.end() ? 0 : found->second;
}

// Agents that have waited for longer have the service's free places first.
bool SourceChoice::ServiceIsFree(const SourceAsk& ask, const Loads& loads, int64_t now_us) const {
  int taken = LoadOf(loads, kServiceSource);
  const int64_t began_us = agents_.at(ask.agent).fetches.at(ask.fingerprint).began_us;
  for (const auto& [name, agent] : agents_) {
    for (const auto& [of, fetch] : agent.fetches) {
      const bool waits = fetch.source.empty() && now_us - fetch.heard_us < kHeardMicros / 5;
      if (name != ask.agent && waits && fetch.began_us < began_us) ++taken;
    }
  }
  return taken < kFetchersOfService;
}

// Of sources with the same number of fetchers, one that has more chunks is better, and any agent is
// better than the service, whose link has other work.
std::string SourceChoice::Best(const SourceAsk& ask, int64_t now_us) const {
  const Loads loads = LoadsFor(ask);
  std::string best;
  std::tuple<int, int64_t> best_rank;
  for (const auto& [name, agent] : agents_) {
    const std::tuple<int, int64_t> rank{LoadOf(loads, name), -Has(name, ask.fingerprint)};
    if (std::get<0>(rank) >= kFetchersOfAgent || (!best.empty() && rank >= best_rank)) continue;
    if (!MayServe(name, ask, now_us)) continue;
    best = name;
    best_rank = rank;
  }
  const int service = LoadOf(loads, kServiceSource);
  if (ServiceIsFree(ask, loads, now_us) && (best.empty() || service < std::get<0>(best_rank)))
    return kServiceSource;
  return best;
}

// Whether the asker's source has nothing more for it than it has itself.
bool SourceChoice::Starves(const SourceAsk& ask) const {
  if (ask.current == kServiceSource) return false;
  const int64_t has = Has(ask.current, ask.fingerprint);
  return has != kWhole && has - ask.have < kBehindChunks;
}

// An idle source for an asker that gets little because its source gets little; "" for none. In a
// chain that is well, nobody above is idle.
std::string SourceChoice::Better(const SourceAsk& ask, int64_t now_us) const {
  if (ask.total - ask.have < kWorthChunks || !Starves(ask)) return "";
  const Loads loads = LoadsFor(ask);
  for (const auto& [name, agent] : agents_) {
    if (name == ask.current || LoadOf(loads, name) > 0) continue;
    const int64_t has = Has(name, ask.fingerprint);
    const bool more = has == kWhole || has - ask.have >= kWorthChunks;
    if (more && MayServe(name, ask, now_us)) return name;
  }
  const bool idle = LoadOf(loads, kServiceSource) == 0;
  return idle && ServiceIsFree(ask, loads, now_us) ? kServiceSource : "";
}

void SourceChoice::Forget(int64_t now_us) {
  for (auto& [name, agent] : agents_) {
    std::erase_if(agent.fetches,
                  [&](const auto& entry) { return now_us - entry.second.heard_us > kHeardMicros; });
    std::erase_if(agent.unreachable, [&](const auto& entry) { return entry.second <= now_us; });
  }
}

}  // namespace evald
