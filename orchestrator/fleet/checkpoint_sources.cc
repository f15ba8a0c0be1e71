#include "orchestrator/fleet/checkpoint_sources.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/clock.h"
#include "base/log.h"
#include "base/sha256.h"
#include "orchestrator/fleet/job_holder.h"

namespace evald {
namespace {

constexpr const char* kTokenOf = "evald-peer-1\n";

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

std::string PeerToken(const std::string& secret, const std::string& fingerprint) {
  return HmacSha256Hex(secret, kTokenOf + fingerprint);
}

void CheckpointSources::Begin(const std::string& instance, const std::string& owner) {
  const std::lock_guard lock(mutex_);
  const std::string trust = TrustOf(owner);
  agents_[instance] = {trust, {}};
  choice_.Join(instance, trust, false);
}

void CheckpointSources::End(const std::string& instance) {
  const std::lock_guard lock(mutex_);
  agents_.erase(instance);
  choice_.Leave(instance);
}

void CheckpointSources::Offers(const std::string& instance, PeerOffer offer) {
  const std::lock_guard lock(mutex_);
  const auto agent = agents_.find(instance);
  if (agent == agents_.end()) return;
  // Two agents of one address cannot be told apart: the later one has it
  for (auto& [other, of] : agents_) {
    const bool same = of.offer.url == offer.url && of.trust == agent->second.trust;
    if (other == instance || !same || offer.url.empty()) continue;
    of.offer = {};
    choice_.Leave(other);
    choice_.Join(other, of.trust, false);
  }
  const bool serves = !offer.url.empty() && !offer.secret.empty() && !offer.authority.empty();
  agent->second.offer = std::move(offer);
  choice_.Join(instance, agent->second.trust, serves);
}

void CheckpointSources::SetConnected(const std::string& instance, bool connected) {
  const std::lock_guard lock(mutex_);
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
  if (question.fault == SourceFault::kWrong) {
    log::Error("the checkpoint {} at {} is not what it was: another agent got wrong bytes",
               fingerprint, question.failed);
  }
  const std::string chosen = choice_.Choose(
      {instance, fingerprint, question.have, question.total, InstanceOf(question.current, instance),
       InstanceOf(question.failed, instance), question.fault},
      MonotonicMicros());
  if (chosen.empty()) return {CheckpointSource::From::kNobody, "", "", ""};
  if (chosen == kServiceSource) return {};
  const PeerOffer& offer = agents_.at(chosen).offer;
  return {CheckpointSource::From::kAgent, offer.url, offer.authority,
          PeerToken(offer.secret, fingerprint)};
}

void CheckpointSources::Done(const std::string& instance, const std::string& fingerprint) {
  const std::lock_guard lock(mutex_);
  choice_.Done(instance, fingerprint);
}

}  // namespace evald
