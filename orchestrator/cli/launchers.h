#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "http_server/tunnel.h"
#include "orchestrator/api/agent_server.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/config/launcher_config.h"
#include "orchestrator/fleet/agent_files.h"
#include "orchestrator/launch/launcher.h"
#include "orchestrator/service/node_pool.h"

namespace evald::cli {

/// Where launched agents come in.
struct AgentDoorOptions {
  std::filesystem::path folder;  ///< for certificates and the port; made private
  std::string address = "0.0.0.0";
  int port = 0;            ///< 0: the same as last time if it is free, else any
  std::string host;        ///< the name by which nodes reach this host; "": its host name
  http::TokenAuth tokens;  ///< of people
  // These outlive the door.
  const JobTokens* job_tokens = nullptr;
  Loop* loop = nullptr;
  AgentHub* hub = nullptr;
};

/// The folder of a door below a service's state folder or a run's folder.
inline constexpr const char* kDoorFolder = "agents";

/// For ApiOptions and AgentServerOptions: hands connections to the hub, on its loop.
std::function<std::shared_ptr<http::Tunnel>(const std::string& token)> ConnectAgents(Loop* loop,
                                                                                     AgentHub* hub);

/// A listener for launched agents with an authority of its own.
class AgentDoor {
 public:
  /// Throws Error(kUsage) if it cannot listen.
  explicit AgentDoor(AgentDoorOptions options);

  const std::string& url() const { return url_; }
  /// PEM of the authority.
  const std::string& authority() const { return authority_; }
  void Stop() { server_->Stop(); }

 private:
  std::unique_ptr<AgentServer> server_;
  std::string url_, authority_;
};

/// Options of an agent by which its host runs code (of models, metrics and task files) as this
/// service or run says: "--name", "value", ...
std::vector<std::string> CodeOptions(const MetricsConfig& metrics, const TaskCodeOptions& code);
/// Adds such options to those that the launcher gives its agents. Those that the launcher's
/// configuration names stay as they are.
void GiveOptions(const std::vector<std::string>& options, LauncherConfig* launcher);

/// The launcher of a configuration's entry. Its jobs' names begin with `prefix`.
std::unique_ptr<Launcher> MakeLauncher(const LauncherConfig& config, const std::string& prefix);
/// The options of its pool of nodes, without the launcher.
NodePoolOptions PoolOptionsOf(const LauncherConfig& config, const AgentDoor& door, double linger_s);
/// Fills in the program and the folder of logs, and throws Error(kUsage) if the launcher cannot
/// work on this host. `state_dir` is of the service or run.
void CompleteLauncher(LauncherConfig* config, const std::filesystem::path& binaries,
                      const std::filesystem::path& state_dir);
/// Prints what the launchers would submit for a node, for people or (--json) programs. Nothing is
/// submitted or written. Names of jobs begin with `prefix` and the launcher's name.
void ShowJobs(const std::vector<LauncherConfig>& launchers, const Common& common,
              const std::filesystem::path& state_dir, const std::string& prefix);

}  // namespace evald::cli
