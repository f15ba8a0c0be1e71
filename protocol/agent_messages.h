#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "evald/json.h"
#include "protocol/messages.h"

/// The protocol between an agent and the orchestrator: newline-delimited JSON as between an agent
/// and its processes. Each message is in a frame with its number and an acknowledgement
/// (docs/protocol.md). Times are microseconds of the sender's CLOCK_MONOTONIC unless a comment says
/// otherwise.
namespace evald::protocol {

inline constexpr int kAgentVersion = 1;

// ---- the beginning of a connection; these messages, Ping and Pong have no number

struct AgentHello {  ///< the agent's first message
  int version = kAgentVersion;
  std::string evald;     ///< its version
  std::string name;      ///< the host's name
  std::string instance;  ///< new each time the agent starts
  int64_t pid = 0;
  std::string session;    ///< the conversation that it wants to go on with; "" for none
  uint64_t received = 0;  ///< the last number that it has received in that conversation
  std::string config;     ///< identifies its command line, for comparison
  std::vector<std::string> devices;
  int threads = 0;  ///< for each worker; 0: the orchestrator's number
  int metric_processes = 0;
  /// Seconds until its host ends, with all that runs there: the end of its job's time limit. -1: no
  /// end is known
  double ends_in_s = -1;
  /// Where other agents may fetch the checkpoints that are staged here. Port 0: nowhere.
  int peer_port = 0;
  std::string peer_host;       ///< an IP address or a name
  std::string peer_authority;  ///< of the listener's certificate: PEM
  std::string peer_secret;     ///< the orchestrator makes tokens for the listener from it
};
struct AgentWelcome {
  std::string session;    ///< new each time the orchestrator starts
  bool resumed = false;   ///< false: forget all earlier conversations; AgentReady is awaited
  uint64_t received = 0;  ///< the last number that the orchestrator has received
};
struct AgentRefused {
  std::string reason;
};
struct AgentPing {  ///< the agent's heartbeat
  int64_t at = 0;
  int64_t memory_total = 0;  ///< bytes of its staging root's file system
  int64_t memory_free = 0;
};
struct AgentPong {
  int64_t at = 0;   ///< the ping's
  int64_t now = 0;  ///< on the orchestrator's clock
};

// ---- numbered: each arrives once and in order, even if connections break

/// A process that runs at the agent, with all that a new orchestrator must know of it.
struct HeldProcess {
  std::string id;  ///< "w0", "m1"
  std::string program;
  std::vector<std::string> arguments;
  std::string tag;          ///< of StartProcess
  int64_t pid = 0;          ///< 0: it has not said hello
  Json engine;              ///< of its Hello
  bool loading = false;     ///< a Load was sent
  std::string fingerprint;  ///< of that Load
  Json loaded;              ///< the Loaded that answered it; null: not yet
  int wants = 0;            ///< wants that wait for an answer
};
struct AgentReady {  ///< no process holds a trial of an earlier conversation any more
  std::vector<HeldProcess> processes;
  std::vector<std::string> staged;  ///< fingerprints of the checkpoints in its host's memory
};
struct FromProcess {
  std::string process;
  Message message;
};
struct ProcessEnded {
  std::string process;
  int exit_code = 0;
  int signal = 0;
  std::string error;  ///< why the process could not be started
};
struct AgentLeaving {};  ///< gives up its host once no process holds a trial or job
/// Its last message: no process holds anything; it ends once this is acknowledged
struct AgentLeft {};

struct StartProcess {
  std::string process;
  std::string program;  ///< "evald-worker", "evald-worker-cuda" or "evald-metric"
  std::vector<std::string> arguments;
  std::string tag;
};
struct ToProcess {
  std::string process;
  Message message;
};
struct KillProcess {
  std::string process;
};
struct AgentStop {};  ///< ends all processes and the agent

using AgentMessage = std::variant<AgentHello, AgentWelcome, AgentRefused, AgentPing, AgentPong,
                                  AgentReady, FromProcess, ProcessEnded, AgentLeaving, AgentLeft,
                                  StartProcess, ToProcess, KillProcess, AgentStop>;

/// A message on its way.
struct Frame {
  uint64_t number = 0;  ///< from 1; 0: no number
  uint64_t ack = 0;     ///< the last number that the sender has received without a gap
  AgentMessage message;
};

/// A message without its frame's members: an object of JSON.
std::string EncodeBody(const AgentMessage& message);
/// One line, with its newline.
std::string EncodeFrame(uint64_t number, uint64_t ack, std::string_view body);
/// Throws Error(kInput) that says which member of which message is wrong.
Frame DecodeFrame(std::string_view line);

/// Whether `name` may name a host: 1 to 63 letters, digits, "-" and "_".
bool IsHostName(std::string_view name);

}  // namespace evald::protocol
