#pragma once

#include <string>

namespace evald::protocol {

/// The variable in which a launched agent finds its AgentJoin. It holds a token, so it stands on no
/// command line.
inline constexpr const char* kJoinVariable = "EVALD_JOIN";

/// Where an agent that a launcher starts finds its orchestrator.
struct AgentJoin {
  std::string server;     ///< "https://host:port"
  std::string token;      ///< of the role worker; ends with the job
  std::string authority;  ///< PEM; the only authority that the agent trusts
  /// The host's name among the orchestrator's. An agent of a job of several nodes appends the
  /// number of its node: "run-0".
  std::string name;
  /// Without an orchestrator for so many seconds, the agent ends, and its job with it
  double linger_s = 600;
};

/// One line of JSON.
std::string EncodeJoin(const AgentJoin& join);
/// Throws Error(kUsage) that names the variable and the wrong member, and shows no token.
AgentJoin DecodeJoin(const std::string& text);

}  // namespace evald::protocol
