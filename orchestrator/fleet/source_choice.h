#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace evald {

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
/// - A source that failed a fetcher is not given to it again. One that gave wrong bytes is given to
///   nobody for this checkpoint. Who cannot be reached is tried again after kUnreachableMicros.
/// - A fetcher whose source has nothing new for it moves to a source that has, if one is idle.
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

  /// An agent is there. `owner` is the name of its token. `serves`: others can fetch from it.
  void Join(const std::string& agent, const std::string& owner, bool serves);
  void Leave(const std::string& agent);
  /// While an agent is not connected, nobody is sent to it.
  void SetConnected(const std::string& agent, bool connected);
  /// The agent has the whole checkpoint.
  void Holds(const std::string& agent, const std::string& fingerprint);

  /// The source to fetch from: an agent, kServiceSource, or "" if the agent has to wait. An agent
  /// that never joined gets kServiceSource.
  std::string Choose(const SourceAsk& ask, int64_t now_us);
  /// The agent has fetched everything: its source has space for another one.
  void Done(const std::string& agent, const std::string& fingerprint);

 private:
  struct Fetch {
    std::string source;
    int64_t have = 0;
    int64_t heard_us = 0;
    int64_t began_us = 0;
    std::set<std::string> failed;
  };
  struct Agent {
    std::string owner;
    bool serves = false;
    bool connected = true;
    std::set<std::string> holds, wrong;          // fingerprints
    std::map<std::string, Fetch> fetches;        // by fingerprint
    std::map<std::string, int64_t> unreachable;  // agents that it could not reach: until when
  };
  using Loads = std::map<std::string, int>;  // fetchers by source

  void Note(const SourceAsk& ask, Agent* asker, Fetch* fetch, int64_t now_us);
  bool MayServe(const std::string& source, const SourceAsk& ask, int64_t now_us) const;
  bool Stands(const SourceAsk& ask, const Fetch& fetch, int64_t now_us) const;
  bool Starves(const SourceAsk& ask) const;
  std::string Best(const SourceAsk& ask, int64_t now_us) const;
  std::string Better(const SourceAsk& ask, int64_t now_us) const;
  bool ServiceIsFree(const SourceAsk& ask, const Loads& loads, int64_t now_us) const;
  Loads LoadsFor(const SourceAsk& ask) const;
  static int LoadOf(const Loads& loads, const std::string& source);
  int64_t Has(const std::string& agent, const std::string& fingerprint) const;
  bool IsBelow(const std::string& agent, const std::string& top,
               const std::string& fingerprint) const;
  size_t Unreached(const std::string& agent, int64_t now_us) const;
  void Forget(int64_t now_us);

  std::map<std::string, Agent> agents_;
};

}  // namespace evald
