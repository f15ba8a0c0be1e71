#include "orchestrator/fleet/checkpoint_sources.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/clock.h"
#include "base/log.h"
#include "base/random_id.h"
#include "base/sha256.h"
#include "base/text.h"
#include "orchestrator/fleet/job_holder.h"

namespace evald {
namespace {

constexpr const char* kTokenOf = "evald-peer-2\n";
constexpr char kAskerEnds = '.';
constexpr int kAskerWords = 2;
constexpr size_t kAskerBytesMax = 64;
constexpr size_t kSaidMax = 100;  // of each agent
constexpr size_t kUrlShown = 100;

// Agents of launched jobs have a token each. The service started all of them, with one launcher, so
// they are trusted alike.
std::string TrustOf(const std::string& owner) {
  return IsJobHolder(owner) ? std::string(kJobHolder) : owner;
}

bool IsAddress6(const std::string& host) {
  in6_addr six{};
  return ::inet_pton(AF_INET6, host.c_str(), &six) == 1;
}

bool IsNameOrAddress4(const std::string& host) {
  return !host.empty() && host.front() != '-' && host.size() <= 253 &&
         std::all_of(host.begin(), host.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_';
         });
}

}  // namespace

std::string PeerUrl(const std::string& host, int port) {
  if (port == 0) return "";
  if (IsAddress6(host)) return fmt::format("https://[{}]:{}", host, port);
  return IsNameOrAddress4(host) ? fmt::format("https://{}:{}", host, port) : "";
}

std::string PeerToken(const std::string& secret, const std::string& fingerprint,
                      const std::string& asker) {
  return asker + kAskerEnds + HmacSha256Hex(secret, kTokenOf + fingerprint + "\n" + asker);
}

std::string AskerOf(std::string_view token) {
  const size_t end = token.find(kAskerEnds);
  const bool right = end != std::string_view::npos && end <= kAskerBytesMax;
  return std::string(right ? token.substr(0, end) : "");
}

void CheckpointSources::Begin(const std::string& instance, const std::string& owner) {
  const std::lock_guard lock(mutex_);
  const std::string trust = TrustOf(owner);
  agents_[instance] = {trust, RandomId(kAskerWords), "", {}, true};
  choice_.Join(instance, trust, false);
}

void CheckpointSources::End(const std::string& instance) {
  const std::lock_guard lock(mutex_);
  agents_.erase(instance);
  said_.erase(instance);
  choice_.Leave(instance);
}

void CheckpointSources::Offers(const std::string& instance, const std::string& host,
                               PeerOffer offer) {
  const std::lock_guard lock(mutex_);
  const auto found = agents_.find(instance);
  if (found == agents_.end()) return;
  Agent& agent = found->second;
  agent.host = host;
  const bool offers = !offer.url.empty() && !offer.secret.empty() && !offer.authority.empty();
  if (!offers || offer.url == agent.offer.url || !TakeAddress(agent, instance, offer.url)) return;
  agent.offer = std::move(offer);
  choice_.SetServes(instance, true);
}

// Two agents of one address cannot be told apart. Who has it and is connected keeps it: otherwise
// anybody could end any other agent as a source. An agent that starts again on its host gets its
// address back, since its former instance is away.
bool CheckpointSources::TakeAddress(const Agent& taker, const std::string& instance,
                                    const std::string& url) {
  for (auto& [other, of] : agents_) {
    if (other == instance || of.offer.url != url || of.trust != taker.trust) continue;
    if (of.connected) {
      if (SaysFirst(instance, fmt::format("address {} {} {}", taker.host, of.host, url))) {
        log::Warn(
            "host '{}' offers checkpoints at {}, where host '{}' already does: others fetch from "
            "'{}' alone there; give each agent an address and port of its own (--peer-listen, "
            "--peer-host)",
            taker.host, url, of.host, of.host);
      }
      return false;
    }
    of.offer = {};
    choice_.SetServes(other, false);
  }
  return true;
}

void CheckpointSources::SetConnected(const std::string& instance, bool connected) {
  const std::lock_guard lock(mutex_);
  const auto agent = agents_.find(instance);
  if (agent != agents_.end()) agent->second.connected = connected;
  choice_.SetConnected(instance, connected);
}

void CheckpointSources::Holds(const std::string& instance,
                              const std::vector<std::string>& fingerprints) {
  const std::lock_guard lock(mutex_);
  for (const std::string& fingerprint : fingerprints) choice_.Holds(instance, fingerprint);
}

std::string CheckpointSources::InstanceOf(const std::string& url, const std::string& asker) const {
  if (url.empty() || url == kServiceSource) return url;
  const auto of = agents_.find(asker);
  for (const auto& [instance, agent] : agents_) {
    if (of != agents_.end() && agent.trust == of->second.trust && agent.offer.url == url)
      return instance;
  }
  return "?";  // an agent that has left
}

CheckpointSource CheckpointSources::Choose(const std::string& instance,
                                           const std::string& fingerprint,
                                           const SourceQuestion& question) {
  const std::lock_guard lock(mutex_);
  const std::string failed = InstanceOf(question.failed, instance);
  const bool accuses = question.fault == SourceFault::kWrong && !failed.empty();
  const bool counts = accuses && choice_.WasSentTo(instance, fingerprint, failed);
  const std::string chosen =
      choice_.Choose({instance, fingerprint, question.have, question.total,
                      InstanceOf(question.current, instance), failed, question.fault},
                     MonotonicMicros());
  if (accuses) TellOfWrong(instance, fingerprint, counts ? failed : "", question.failed);
  if (chosen.empty()) return {CheckpointSource::From::kNobody, "", "", ""};
  if (chosen == kServiceSource) return {};
  const PeerOffer& offer = agents_.at(chosen).offer;
  return {CheckpointSource::From::kAgent, offer.url, offer.authority,
          PeerToken(offer.secret, fingerprint, agents_.at(instance).asker)};
}

// `accused` is the source that the agent was sent to, or "" if it was not sent to the URL.
void CheckpointSources::TellOfWrong(const std::string& instance, const std::string& fingerprint,
                                    const std::string& accused, const std::string& url) {
  const std::string by = HostOf(instance);
  if (accused.empty()) {
    if (SaysFirst(instance, fmt::format("stranger {} {}", by, fingerprint))) {
      log::Warn(
          "host '{}' says that it got wrong bytes of the checkpoint {} from {}, to which it "
          "was not sent: this is ignored",
          by, fingerprint, Shortened(PrintableLine(url), kUrlShown));
    }
    return;
  }
  const std::string of = HostOf(accused);
  if (!SaysFirst(instance, fmt::format("wrong {} {} {}", by, of, fingerprint))) return;
  log::Error("host '{}' says that it got wrong bytes of the checkpoint {} from host '{}': {}", by,
             fingerprint, of,
             choice_.IsSetAside(accused, fingerprint)
                 ? "another host said so too, and nobody fetches it there any more"
                 : "either the copy there is damaged, or one of the two is not to be trusted; "
                   "others fetch it there until a second host says so");
}

std::string CheckpointSources::HostOf(const std::string& instance) const {
  const auto agent = agents_.find(instance);
  return agent == agents_.end() ? "" : agent->second.host;
}

// Whether the log has no such line of this agent yet. It stays short whatever agents say.
bool CheckpointSources::SaysFirst(const std::string& instance, const std::string& what) {
  std::set<std::string>& said = said_[instance];
  if (said.size() >= kSaidMax || !said.insert(what).second) return false;
  if (said.size() == kSaidMax) {
    log::Warn("the agent of '{}' has said {} such things of others: no more of them are logged",
              HostOf(instance), kSaidMax);
  }
  return true;
}

void CheckpointSources::Done(const std::string& instance, const std::string& fingerprint) {
  const std::lock_guard lock(mutex_);
  choice_.Done(instance, fingerprint, MonotonicMicros());
}

}  // namespace evald
