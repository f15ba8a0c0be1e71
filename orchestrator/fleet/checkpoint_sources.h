#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/fleet/source_choice.h"

namespace evald {

/// Where an agent gives other agents the checkpoints that are staged on its host.
struct PeerOffer {
  std::string url;        ///< "https://10.0.0.7:40123"; "": nowhere
  std::string authority;  ///< PEM; signed the certificate of the listener there
  std::string secret;     ///< the listener takes tokens that are made from it (PeerToken)
};

/// The URL of a listener; "" for port 0, or for a host that is neither a name nor an IP address.
std::string PeerUrl(const std::string& host, int port);

/// The token that opens one checkpoint at the agent with this secret, and nothing else. Whoever
/// holds it was told to load the checkpoint, so it opens nothing that its holder may not have.
/// `asker` names the holder to the listener, which counts each one's calls: letters and digits.
std::string PeerToken(const std::string& secret, const std::string& fingerprint,
                      const std::string& asker);
/// The `asker` in a token; "" if the text is no such token.
std::string AskerOf(std::string_view token);

/// The answer to an agent that asks for a source.
struct CheckpointSource {
  enum class From { kService, kAgent, kNobody };  ///< kNobody: ask again soon
  From from = From::kService;
  std::string url, authority, token;  ///< of an agent
};

/// An agent's question, with the URLs of sources (or kServiceSource) in place of agents.
struct SourceQuestion {
  int64_t have = 0;
  int64_t total = 0;
  std::string current;
  std::string failed;
  SourceFault fault = SourceFault::kNone;
};

/// Who may fetch which checkpoint from whom: SourceChoice with the addresses and secrets of agents.
/// Agents are known by their instances, which no other agent learns. Any thread.
class CheckpointSources {
 public:
  /// `owner` is the name of the agent's token. Agents of one token fetch from each other; so do all
  /// agents of launched jobs, whose tokens are called "job:<host>".
  void Begin(const std::string& instance, const std::string& owner);
  void End(const std::string& instance);
  /// Called at each hello of the agent of `host`. An address that a connected agent of the same
  /// trust offers stays that agent's; the log names both.
  void Offers(const std::string& instance, const std::string& host, PeerOffer offer);
  void SetConnected(const std::string& instance, bool connected);
  /// The checkpoints that the agent found staged on its host when it came.
  void Holds(const std::string& instance, const std::vector<std::string>& fingerprints);

  CheckpointSource Choose(const std::string& instance, const std::string& fingerprint,
                          const SourceQuestion& question);
  void Done(const std::string& instance, const std::string& fingerprint);

 private:
  struct Agent {
    std::string trust;  // agents with the same one fetch from each other
    std::string asker;  // its name in tokens; says nothing of its instance
    std::string host;
    PeerOffer offer;
    bool connected = true;
  };
  std::string InstanceOf(const std::string& url, const std::string& asker) const;
  std::string HostOf(const std::string& instance) const;
  bool TakeAddress(const Agent& taker, const std::string& instance, const std::string& url);
  void TellOfWrong(const std::string& instance, const std::string& fingerprint,
                   const std::string& accused, const std::string& url);
  bool SaysFirst(const std::string& instance, const std::string& what);

  std::mutex mutex_;
  std::map<std::string, Agent> agents_;  // by instance
  SourceChoice choice_;
  /// What each agent brought into the log, so that it is there once
  std::map<std::string, std::set<std::string>> said_;
};

}  // namespace evald
