#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "orchestrator/fleet/fetch_rate.h"

namespace evald {

/// Chunks that an agent fetches at once from the service, and from another agent. Chunks that come
/// at the same time reach the next agent only when all are whole.
inline constexpr int kServiceConnections = 4, kPeerConnections = 2;

/// Why an agent could not fetch from another one.
enum class SourceFault {
  kNone,
  kUnreachable,  ///< no connection, or an untrusted one
  kSilent,       ///< it gave nothing for too long, or broke off
  kWrong,        ///< bytes that are not the checkpoint's
  kGone,         ///< it does not have the checkpoint, or does not give it
};

/// An agent that fetches a checkpoint asks for a source, again and again until it has all.
struct SourceAsk {
  std::string agent;
  std::string fingerprint;
  int64_t have = 0;   ///< chunks that it has
  int64_t total = 0;  ///< chunks of the checkpoint
  std::string
      current;  ///< the source that it fetches from now: an agent, kServiceSource, or "" for none
  std::string failed;  ///< the agent that failed it since the last ask; "" for none
  SourceFault fault = SourceFault::kNone;
};

inline constexpr const char* kServiceSource = "service";

/// Decides from whom each agent fetches a checkpoint, so that the service's link does not carry the
/// checkpoint once for each host: hosts pass it on, mostly in a chain, each while it still fetches.
/// A plain value: no clock, socket or thread. Times are microseconds of any one clock that does not
/// go back.
///
/// - A source is an agent of the same token (a checkpoint's hashes find accidents, not forgeries)
///   that has the checkpoint or is fetching it, or the service.
/// - The source with the fewest fetchers is taken: an agent has at most kFetchersOfAgent, and the
///   service kFetchersOfService. Others wait, in the order in which they came.
/// - A source that failed a fetcher is not given to it again. Who cannot be reached is tried again
///   after kUnreachableMicros.
/// - A fetcher may lie. What it says of a source counts for others only if it was sent to that
///   source, and only if a second agent says the same: then one that gave wrong bytes is given to
///   nobody for this checkpoint, nor is one that does not have it.
/// - A fetcher whose source has nothing new for it moves to a source that has, if one is idle.
/// - A fetcher whose source is far slower than the service would be moves to an idle source, or to
///   the service. Where all links are alike, nobody moves.
class SourceChoice {
 public:
  static constexpr int kFetchersOfAgent = 2;
  static constexpr int kFetchersOfService = 4;
  static constexpr int64_t kHeardMicros = 30'000'000;  ///< a fetcher that does not ask is gone
  static constexpr int64_t kUnreachableMicros = int64_t{10} * 60 * 1'000'000;
  /// After so many agents that it cannot reach, or that cannot reach it, an agent is left alone.
  static constexpr size_t kUnreachableMax = 3;
  static constexpr int64_t kBehindChunks = 8;  ///< a source with fewer new chunks starves a fetcher
  static constexpr int64_t kWorthChunks = 64;  ///< fewer chunks are not worth another source
  static constexpr size_t kAccusersMin = 2;    ///< agents that agree on a fault of a source
  /// A source is slow if the rest takes longer than this, and so many times as long as it would
  /// from the service.
  static constexpr double kPatienceSeconds = 30;
  static constexpr double kFarSlower = 3;
  /// Chunks a second that the service is taken to give at least, whatever was measured: a fetcher
  /// that lies about its rate must not make the service look slow.
  static constexpr double kServiceRateMin = 1;
  /// A fetcher waits so long for a source that has nothing for it yet, before it is slow.
  static constexpr int64_t kNothingYetMicros = 30'000'000;

  /// An agent is there. `owner` is the name of its token. `serves`: others can fetch from it.
  void Join(const std::string& agent, const std::string& owner, bool serves);
  void Leave(const std::string& agent);
  void SetServes(const std::string& agent, bool serves);
  /// While an agent is not connected, nobody is sent to it.
  void SetConnected(const std::string& agent, bool connected);
  /// The agent has the whole checkpoint.
  void Holds(const std::string& agent, const std::string& fingerprint);

  /// The source to fetch from: an agent, kServiceSource, or "" if the agent has to wait. An agent
  /// that never joined gets kServiceSource.
  std::string Choose(const SourceAsk& ask, int64_t now_us);
  /// The agent has fetched everything: its source has space for another one.
  void Done(const std::string& agent, const std::string& fingerprint, int64_t now_us);

  /// Whether the agent was told to fetch the checkpoint from `source`, now or before its last move.
  bool WasSentTo(const std::string& agent, const std::string& fingerprint,
                 const std::string& source) const;
  /// Whether agents that agree have said that the source's bytes are wrong.
  bool IsSetAside(const std::string& source, const std::string& fingerprint) const;

 private:
  struct Fetch {
    std::string source, before;  // the source before this one
    int64_t have = 0, total = 0;
    int64_t heard_us = 0;
    int64_t began_us = 0;
    FetchRate rate;      // from `source`
    bool tries = false;  // it was moved to the service, which should be faster
    std::set<std::string> failed;
  };
  using Accusers = std::map<std::string, std::set<std::string>>;  // agents, by fingerprint
  struct Agent {
    std::string owner;
    bool serves = false;
    bool connected = true;
    std::set<std::string> holds;                 // fingerprints
    Accusers wrong, gone;                        // who says so of this agent
    std::map<std::string, Fetch> fetches;        // by fingerprint
    std::map<std::string, int64_t> unreachable;  // agents that it could not reach: until when
  };
  using Loads = std::map<std::string, int>;  // fetchers by source

  void Note(const SourceAsk& ask, Agent* asker, Fetch* fetch, int64_t now_us);
  void Send(const SourceAsk& ask, const std::string& source, Fetch* fetch, int64_t now_us);
  void Measure(const SourceAsk& ask, const std::string& owner, Fetch* fetch, int64_t now_us);
  std::string Next(const SourceAsk& ask, Fetch* fetch, int64_t now_us);
  bool IsSlow(const SourceAsk& ask, const Fetch& fetch, const Loads& loads) const;
  double RateOfService(const std::string& owner, const Loads& loads) const;
  bool ServiceIsTried(const std::string& owner) const;
  bool IsAccused(const std::string& source, const std::string& fingerprint) const;
  bool MayServe(const std::string& source, const SourceAsk& ask, int64_t now_us) const;
  bool Stands(const SourceAsk& ask, const Fetch& fetch, int64_t now_us) const;
  bool Starves(const SourceAsk& ask) const;
  std::string Best(const SourceAsk& ask, int64_t now_us) const;
  std::string Idle(const SourceAsk& ask, const Loads& loads, int64_t now_us) const;
  bool ServiceIsFree(const SourceAsk& ask, const Loads& loads, int64_t now_us) const;
  Loads LoadsFor(const SourceAsk& ask) const;
  static int LoadOf(const Loads& loads, const std::string& source);
  int64_t Has(const std::string& agent, const std::string& fingerprint) const;
  bool IsBelow(const std::string& agent, const std::string& top,
               const std::string& fingerprint) const;
  size_t Unreached(const std::string& agent, int64_t now_us) const;
  void Forget(int64_t now_us);

  std::map<std::string, Agent> agents_;
  std::map<std::string, ServiceRates> given_;  // by owner: agents of another one may lie
};

}  // namespace evald
