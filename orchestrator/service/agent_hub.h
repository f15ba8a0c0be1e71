#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "orchestrator/fleet/agent_files.h"
#include "orchestrator/fleet/local_agent.h"
#include "orchestrator/fleet/loop.h"
#include "orchestrator/fleet/remote_host.h"
#include "orchestrator/fleet/wire.h"
#include "orchestrator/service/fleet.h"
#include "orchestrator/service/job_tokens.h"

namespace evald {

class AgentListener;

/// The orchestrator's end of its agents. Takes their connections, resumes conversations after a
/// connection ended, tells the fleet which hosts are there, and keeps the agent of this host
/// running. Loop thread only.
class AgentHub {
 public:
  /// Listens in local.state_dir. `loop` and `fleet` outlive the hub. Throws Error(kInfrastructure).
  AgentHub(Loop* loop, Fleet* fleet, LocalAgent local);
  ~AgentHub();

  /// Keeps an agent of this host running from now on. Calls `failed`, with the end of the agent's
  /// log, if the agent has ended again and again before it said hello.
  void Start(std::function<void(const Error& why)> failed);
  /// Takes agents of other hosts only.
  void Serve() { Tick(); }
  /// Takes a connection over which an agent will say hello. `owner` is the name of the token that
  /// the agent presented over the network ("" if no tokens are in force); such an agent may not
  /// call itself kLocalHost. `owner` is std::nullopt for this host's own agent. A host belongs to
  /// the token that its agent first came with, until the host has left or is forgotten.
  void Take(std::shared_ptr<Wire> wire, std::optional<std::string> owner);
  /// From now on, tokens of launched jobs and the names of their hosts belong together. `tokens`
  /// outlives the hub.
  void Guard(const JobTokens* tokens) { job_tokens_ = tokens; }
  /// Ends the agent of a host at once, with its processes.
  void StopHost(const std::string& host);
  /// Ends the agents of launched jobs at once, with their processes.
  void StopLaunched();
  /// Whether an agent of a launched job is connected.
  bool LaunchedConnected() const;
  /// The hosts of a job that is over, by the name that the job was given: their agents are cut off,
  /// and their work goes to others.
  void Expel(const std::string& host, const std::string& why);
  /// Files that agents of other hosts may fetch and give.
  const AgentFiles& files() const { return *files_; }
  /// The same, for threads that may outlive the hub.
  std::shared_ptr<const AgentFiles> shared_files() const { return files_; }
  /// {"pid", "version", "shared_memory"} of a host's agent.
  Json About(const std::string& host) const;
  /// Agents that may not join: {"name", "reason", "at"} (seconds since 1970) for the last refusal
  /// of each name. A refusal goes when the agent joins.
  Json Refusals() const;
  /// Why the last agent of a job's host was refused that came with the job's token; "" if none was,
  /// or one has joined since.
  std::string RefusalOf(const std::string& host) const;

 private:
  struct Member {
    std::unique_ptr<RemoteHost> host;
    std::optional<std::string> owner;
    protocol::AgentHello hello;
    int64_t away_since_us = 0;  ///< 0: a connection is there
    bool ready = false;
    int64_t memory_total = 0, memory_free = 0;
  };
  struct Guest {  // a connection before its hello
    std::shared_ptr<Wire> wire;
    int64_t since_us = 0;
  };

  static bool IsLaunched(const Member& member);
  void Tick();
  void KeepLocal(int64_t now);
  void LocalFailed();
  void Refuse(const std::shared_ptr<Wire>& wire, const std::string& name,
              const std::optional<std::string>& owner, const std::string& reason);
  void OnHello(const std::shared_ptr<Wire>& wire, const std::optional<std::string>& owner,
               const std::string& line);
  std::string ReasonAgainst(const protocol::AgentHello& hello,
                            const std::optional<std::string>& owner) const;
  std::string TooMuchOf(const protocol::AgentHello& hello,
                        const std::optional<std::string>& owner) const;
  int ConnectedBeside(const std::string& name, const std::string& owner) const;
  void Join(const std::shared_ptr<Wire>& wire, const std::optional<std::string>& owner,
            const protocol::AgentHello& hello);
  void ForgetAway(int64_t now);
  void Deliver(const std::string& name, const protocol::AgentMessage& message);
  void OnMessage(const std::string& name, const protocol::AgentMessage& message);
  void StopMember(const std::string& name, std::chrono::milliseconds grace,
                  std::function<void()> done);
  void WaitForEnd(int64_t until_us, std::function<void()> done);

  Loop* loop_;
  Fleet* fleet_;
  LocalAgent local_;
  std::string session_;
  std::unique_ptr<AgentListener> listener_;
  const JobTokens* job_tokens_ = nullptr;
  std::shared_ptr<AgentFiles> files_ = std::make_shared<AgentFiles>();
  std::map<std::string, Member> members_;
  std::map<Wire*, Guest> guests_;
  std::function<void(const Error&)> local_failed_;
  struct Refusal {
    std::string reason;
    double at = 0;
    std::optional<std::string> owner;
  };
  std::map<std::string, Refusal> refusals_;  ///< by name
  bool keep_local_ = false;
  int spawns_ = 0;  ///< since the local agent was last there
  int64_t spawned_us_ = 0;
  pid_t spawned_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace evald
