#include "orchestrator/fleet/source_choice.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace evald {
namespace {

constexpr int64_t kWhole = std::numeric_limits<int64_t>::max();
// An agent has so many connections to its source, each with a chunk under way.

}  // namespace

void SourceChoice::Join(const std::string& agent, const std::string& owner, bool serves) {
  agents_[agent] = {};
  agents_[agent].owner = owner;
  agents_[agent].serves = serves;
}

void SourceChoice::Leave(const std::string& agent) {
  agents_.erase(agent);
  for (auto& [name, other] : agents_) {
    for (auto* accusers : {&other.wrong, &other.gone})
      for (auto& [fingerprint, by] : *accusers) by.erase(agent);
  }
}

void SourceChoice::SetServes(const std::string& agent, bool serves) {
  const auto found = agents_.find(agent);
  if (found != agents_.end()) found->second.serves = serves;
}

void SourceChoice::SetConnected(const std::string& agent, bool connected) {
  const auto found = agents_.find(agent);
  if (found != agents_.end()) found->second.connected = connected;
}

void SourceChoice::Holds(const std::string& agent, const std::string& fingerprint) {
  const auto found = agents_.find(agent);
  if (found != agents_.end()) found->second.holds.insert(fingerprint);
}

void SourceChoice::Done(const std::string& agent, const std::string& fingerprint, int64_t now_us) {
  const auto found = agents_.find(agent);
  if (found == agents_.end()) return;
  Agent& of = found->second;
  const auto fetch = of.fetches.find(fingerprint);
  if (fetch != of.fetches.end() && fetch->second.source == kServiceSource) {
    given_[of.owner].Ended(fetch->second.total - fetch->second.rate.began_with(),
                           now_us - fetch->second.rate.began_us());
  }
  of.fetches.erase(fingerprint);
  of.holds.insert(fingerprint);
  of.wrong.erase(fingerprint);  // it has been fetched anew, and every chunk was checked
  of.gone.erase(fingerprint);
}

bool SourceChoice::WasSentTo(const std::string& agent, const std::string& fingerprint,
                             const std::string& source) const {
  const auto found = agents_.find(agent);
  if (found == agents_.end() || source.empty()) return false;
  const auto fetch = found->second.fetches.find(fingerprint);
  return fetch != found->second.fetches.end() &&
         (fetch->second.source == source || fetch->second.before == source);
}

bool SourceChoice::IsSetAside(const std::string& source, const std::string& fingerprint) const {
  const auto found = agents_.find(source);
  if (found == agents_.end()) return false;
  const auto by = found->second.wrong.find(fingerprint);
  return by != found->second.wrong.end() && by->second.size() >= kAccusersMin;
}

bool SourceChoice::IsAccused(const std::string& source, const std::string& fingerprint) const {
  const auto by = agents_.at(source).wrong.find(fingerprint);
  return by != agents_.at(source).wrong.end() && !by->second.empty();
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
  fetch.total = ask.total;
  // Whoever asks for the checkpoint does not have it, whatever it had before
  asker.holds.erase(ask.fingerprint);
  Note(ask, &asker, &fetch, now_us);
  if (Stands(ask, fetch, now_us)) {
    Measure(ask, asker.owner, &fetch, now_us);
    const std::string next = Next(ask, &fetch, now_us);
    if (!next.empty()) Send(ask, next, &fetch, now_us);
  } else {
    Send(ask, Best(ask, now_us), &fetch, now_us);
  }
  return fetch.source;
}

void SourceChoice::Send(const SourceAsk& ask, const std::string& source, Fetch* fetch,
                        int64_t now_us) {
  if (source == fetch->source || source != kServiceSource) fetch->tries = false;
  if (source != fetch->source) fetch->before = fetch->source;
  fetch->source = source;
  fetch->rate.Begin(now_us, ask.have);
}

// Takes down how far the fetch is. A source that has nothing yet for a fetcher is not slow.
void SourceChoice::Measure(const SourceAsk& ask, const std::string& owner, Fetch* fetch,
                           int64_t now_us) {
  FetchRate& rate = fetch->rate;
  const bool waits = ask.have <= rate.began_with() && Starves(ask);
  if (!waits || now_us - rate.began_us() > kNothingYetMicros) {
    rate.Report(now_us, ask.have);
  } else {
    rate.Pause(now_us);
  }
  if (!fetch->tries) return;
  const auto found = rate.AtMost(kServiceConnections);
  if (!found) return;
  fetch->tries = false;
  // The service is as slow as others are: nobody else needs to try it
  if (*found * kFarSlower < given_[owner].best()) given_[owner].Clear();
}

// Takes what the asker says of the source that failed it.
void SourceChoice::Note(const SourceAsk& ask, Agent* asker, Fetch* fetch, int64_t now_us) {
  if (ask.fault == SourceFault::kNone || ask.failed.empty()) return;
  fetch->failed.insert(ask.failed);
  if (!WasSentTo(ask.agent, ask.fingerprint, ask.failed)) return;
  if (ask.fault == SourceFault::kUnreachable)
    asker->unreachable[ask.failed] = now_us + kUnreachableMicros;
  const auto source = agents_.find(ask.failed);
  if (source == agents_.end() || source->second.owner != asker->owner) return;
  if (ask.fault == SourceFault::kWrong) source->second.wrong[ask.fingerprint].insert(ask.agent);
  if (ask.fault == SourceFault::kGone) {
    std::set<std::string>& by = source->second.gone[ask.fingerprint];
    by.insert(ask.agent);
    if (by.size() < kAccusersMin) return;
    source->second.holds.erase(ask.fingerprint);
    source->second.gone.erase(ask.fingerprint);
  }
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
  if (IsSetAside(source, ask.fingerprint) || Has(source, ask.fingerprint) < 0) return false;
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

// Of sources with the same number of fetchers, one of which nobody says that its bytes are wrong is
// better, then one that has more chunks, and any agent is better than the service, whose link has
// other work.
std::string SourceChoice::Best(const SourceAsk& ask, int64_t now_us) const {
  const Loads loads = LoadsFor(ask);
  std::string best;
  std::tuple<int, bool, int64_t> best_rank;
  for (const auto& [name, agent] : agents_) {
    const std::tuple<int, bool, int64_t> rank{LoadOf(loads, name), IsAccused(name, ask.fingerprint),
                                              -Has(name, ask.fingerprint)};
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

// Another source for an asker that could go on with its own; "" for none. In a chain that is well,
// nobody above is idle, and the service would be no faster.
std::string SourceChoice::Next(const SourceAsk& ask, Fetch* fetch, int64_t now_us) {
  if (ask.current == kServiceSource) return "";
  const Loads loads = LoadsFor(ask);
  if (IsSlow(ask, *fetch, loads)) {
    std::string next = Idle(ask, loads, now_us);
    if (next.empty() && ServiceIsFree(ask, loads, now_us) &&
        !ServiceIsTried(agents_.at(ask.agent).owner)) {
      next = kServiceSource;
      fetch->tries = true;
    }
    if (!next.empty()) fetch->failed.insert(ask.current);  // it is not tried again
    return next;
  }
  if (ask.total - ask.have < kWorthChunks || !Starves(ask)) return "";
  const std::string next = Idle(ask, loads, now_us);
  if (!next.empty()) return next;
  const bool idle = LoadOf(loads, kServiceSource) == 0;
  return idle && ServiceIsFree(ask, loads, now_us) ? kServiceSource : "";
}

// An agent that gives to nobody, and has more than the asker.
std::string SourceChoice::Idle(const SourceAsk& ask, const Loads& loads, int64_t now_us) const {
  for (const auto& [name, agent] : agents_) {
    if (name == ask.current || LoadOf(loads, name) > 0) continue;
    const int64_t has = Has(name, ask.fingerprint);
    const bool more = has == kWhole || has - ask.have >= kWorthChunks;
    if (more && MayServe(name, ask, now_us)) return name;
  }
  return "";
}

bool SourceChoice::IsSlow(const SourceAsk& ask, const Fetch& fetch, const Loads& loads) const {
  const int64_t rest = ask.total - ask.have;
  const auto rate = fetch.rate.AtMost(std::min(int64_t{kPeerConnections}, rest));
  if (!rate || static_cast<double>(rest) < kPatienceSeconds * *rate) return false;
  return *rate * kFarSlower < RateOfService(agents_.at(ask.agent).owner, loads);
}

// The chunks a second that the service would give to one more. What it gave to one is shared.
double SourceChoice::RateOfService(const std::string& owner, const Loads& loads) const {
  const auto given = given_.find(owner);
  double best = kServiceRateMin;
  if (given != given_.end()) best = std::max(best, given->second.best());
  for (const auto& [name, agent] : agents_) {
    if (agent.owner != owner) continue;
    for (const auto& [of, fetch] : agent.fetches) {
      if (fetch.source == kServiceSource)
        best = std::max(best, fetch.rate.AtLeast(kServiceConnections).value_or(0));
    }
  }
  return best / (LoadOf(loads, kServiceSource) + 1);
}

// Whether a fetcher was moved to the service, and it is not known yet what came of that. Agents of
// another owner may lie, and hold nobody up.
bool SourceChoice::ServiceIsTried(const std::string& owner) const {
  for (const auto& [name, agent] : agents_) {
    if (agent.owner != owner) continue;
    for (const auto& [of, fetch] : agent.fetches) {
      if (fetch.tries && fetch.source == kServiceSource) return true;
    }
  }
  return false;
}

void SourceChoice::Forget(int64_t now_us) {
  for (auto& [name, agent] : agents_) {
    std::erase_if(agent.fetches,
                  [&](const auto& entry) { return now_us - entry.second.heard_us > kHeardMicros; });
    std::erase_if(agent.unreachable, [&](const auto& entry) { return entry.second <= now_us; });
  }
}

}  // namespace evald
