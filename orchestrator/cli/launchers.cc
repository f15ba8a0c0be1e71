#include "orchestrator/cli/launchers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "base/log.h"
#include "base/own_folder.h"
#include "base/print.h"
#include "base/program.h"
#include "base/text.h"
#include "evald/error.h"
#include "http_server/own_certificates.h"
#include "metrics/sandbox_options.h"
#include "orchestrator/launch/command_launcher.h"
#include "orchestrator/launch/slurm.h"
#include "orchestrator/service/tunnel_wire.h"

namespace evald::cli {
namespace {

namespace fs = std::filesystem;

std::string ThisHost() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

int RememberedPort(const fs::path& file) {
  try {
    const std::string text(Trim(ReadFile(file)));
    const int port = std::atoi(text.c_str());
    return port > 0 && port < 65536 ? port : 0;
  } catch (const Error&) {
    return 0;
  }
}

void RequireProgram(const std::string& launcher, const std::string& program) {
  if (!OnPath(program).empty()) return;
  throw Error(ErrorKind::kUsage,
              fmt::format("launcher '{}': the program '{}' is not there", launcher, program),
              "start evald on a host from which jobs may be submitted, or mend PATH");
}

SlurmSettings SlurmSettingsOf(const LauncherConfig& config, const std::string& prefix) {
  SlurmSettings settings;
  settings.prefix = prefix;
  settings.partition = config.partition;
  settings.gpus_per_node = config.gpus_per_node;
  settings.cpus_per_node = config.cpus_per_node;
  settings.time_s = config.time_s;
  settings.warning_s = config.warning_s;
  settings.more = config.sbatch;
  settings.evald = config.evald;
  settings.agent = config.agent;
  settings.logs = config.logs;
  return settings;
}

}  // namespace

std::function<std::shared_ptr<http::Tunnel>(const std::string& token)> ConnectAgents(
    Loop* loop, AgentHub* hub) {
  return [loop, hub](const std::string& token) {
    TunnelEnds ends = MakeTunnel(loop);
    loop->Post([hub, wire = ends.wire, token] { hub->Take(wire, token); });
    return ends.tunnel;
  };
}

AgentDoor::AgentDoor(AgentDoorOptions options) {
  MakePrivateFolder(options.folder, "set state_dir to a folder of your own");
  const std::string host = options.host.empty() ? ThisHost() : options.host;
  const http::OwnCertificates own =
      http::KeepOwnCertificates(options.folder, {host, "localhost", "127.0.0.1"});
  authority_ = ReadFile(own.authority);
  AgentServerOptions server;
  server.http.address = options.address;
  server.http.certificate = own.certificate;
  server.http.key = own.key;
  server.http.tokens = std::move(options.tokens);
  server.http.hosts = {host};
  server.http.tokens.AddChanging([tokens = options.job_tokens](std::string_view token) {
    return tokens->Find(http::HashOfToken(token));
  });
  server.connect_agent = ConnectAgents(options.loop, options.hub);
  server.agent_files = &options.hub->files();
  const fs::path file = options.folder / "port";
  const int remembered = options.port == 0 ? RememberedPort(file) : 0;
  server.http.port = static_cast<uint16_t>(options.port != 0 ? options.port : remembered);
  try {
    server_ = std::make_unique<AgentServer>(server);
  } catch (const Error& e) {
    if (remembered == 0) throw;
    log::Warn("{}; agents of an earlier start do not find this service again", e.what());
    server.http.port = 0;
    server_ = std::make_unique<AgentServer>(server);
  }
  WriteFileAtomic(file, std::to_string(server_->port()) + "\n");
  url_ = fmt::format("https://{}:{}", host, server_->port());
}

std::vector<std::string> CodeOptions(const MetricsConfig& metrics, const TaskCodeOptions& code) {
  return {"--sandbox", ToJson(metrics.sandbox).dump(), "--task-code", ToJson(code).dump()};
}

void GiveOptions(const std::vector<std::string>& options, LauncherConfig* launcher) {
  const std::vector<std::string> own = launcher->agent;
  for (size_t i = 0; i + 1 < options.size(); i += 2) {
    const bool named = std::any_of(own.begin(), own.end(), [&](const std::string& argument) {
      return argument == options[i] || argument.starts_with(options[i] + "=");
    });
    if (!named) launcher->agent.insert(launcher->agent.end(), {options[i], options[i + 1]});
  }
}

std::unique_ptr<Launcher> MakeLauncher(const LauncherConfig& config, const std::string& prefix) {
  if (config.kind == "slurm")
    return std::make_unique<SlurmLauncher>(SlurmSettingsOf(config, prefix));
  return std::make_unique<CommandLauncher>(
      CommandLauncherSettings{prefix, config.start, config.stop, config.list, config.log,
                              config.evald.string(), config.agent});
}

NodePoolOptions PoolOptionsOf(const LauncherConfig& config, const AgentDoor& door,
                              double linger_s) {
  NodePoolOptions options;
  options.name = config.name;
  options.kind = config.kind;
  options.limits.nodes_min = config.nodes_min;
  options.limits.nodes_max = config.nodes_max;
  options.limits.pending_max = config.pending_max;
  options.limits.node_hours_per_day = config.node_hours_per_day;
  options.gpus_per_node = config.gpus_per_node;
  options.limits.start_s = config.startup_s;
  options.limits.useful_s = config.worth_s;
  options.limits.idle_s = config.idle_s;
  options.limits.retry_s = config.retry_s;
  options.limits.list_every_s = config.poll_s;
  options.limits.agent_patience_s = config.agent_s;
  options.limits.unlisted_patience_s = 3 * config.poll_s + 90;
  options.server = door.url();
  options.authority = door.authority();
  options.linger_s = linger_s;
  return options;
}

namespace {

void FillIn(LauncherConfig* config, const fs::path& binaries, const fs::path& state_dir) {
  if (config->evald.empty()) config->evald = binaries / "evald";
  if (config->logs.empty()) config->logs = state_dir / kDoorFolder / "logs";
}

}  // namespace

void CompleteLauncher(LauncherConfig* config, const fs::path& binaries, const fs::path& state_dir) {
  FillIn(config, binaries, state_dir);
  if (config->kind != "slurm") {
    for (const auto* program : {&config->start, &config->stop, &config->list})
      RequireProgram(config->name, program->front());
    return;
  }
  for (const char* program : {"sbatch", "squeue", "scancel"}) RequireProgram(config->name, program);
  MakeDirectories(config->logs);
}

namespace {

Json JobOf(const LauncherConfig& config, const std::string& prefix) {
  if (config.kind != "slurm") return {{"launcher", config.name}, {"command", config.start}};
  NodeJob job;
  job.number = 1;
  job.name = prefix + "1";
  const SlurmLauncher slurm(SlurmSettingsOf(config, prefix));
  std::vector<std::string> command = {"sbatch"};
  for (const std::string& argument : slurm.SubmitArguments(job, {})) command.push_back(argument);
  return {{"launcher", config.name}, {"command", command}, {"script", slurm.Script()}};
}

}  // namespace

void ShowJobs(const std::vector<LauncherConfig>& launchers, const Common& common,
              const fs::path& state_dir, const std::string& prefix) {
  Json jobs = Json::array();
  for (LauncherConfig launcher : launchers) {
    FillIn(&launcher, common.binaries, state_dir);
    Json job = JobOf(launcher, prefix + launcher.name + "-");
    job["nodes"] = {{"min", launcher.nodes_min}, {"max", launcher.nodes_max}};
    jobs.push_back(std::move(job));
  }
  if (common.json) return PrintJson({{"launchers", std::move(jobs)}});
  if (launchers.empty()) Print(stdout, "no launchers: nothing would be submitted\n");
  for (const Json& job : jobs) {
    std::vector<std::string> words = job["command"];
    for (std::string& word : words) word = ShellQuoted(word);
    Print(stdout, "launcher '{}' would submit this for each of at most {} nodes:\n\n",
          job["launcher"].get<std::string>(), job["nodes"]["max"].get<int>());
    for (size_t i = 0; i < words.size(); ++i)
      Print(stdout, "{}{}{}\n", i == 0 ? "" : "  ", words[i], i + 1 < words.size() ? " \\" : "");
    if (!job.contains("script")) continue;
    Print(stdout, "\nwith this script, and a secret in the variable EVALD_JOIN:\n\n");
    for (const std::string& line : Split(job["script"].get<std::string>(), '\n'))
      Print(stdout, "{}\n", line);
  }
}

}  // namespace evald::cli
