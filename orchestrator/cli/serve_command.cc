#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/log.h"
#include "base/open_files.h"
#include "base/own_folder.h"
#include "base/print.h"
#include "base/socket_directory.h"
#include "base/text.h"
#include "base/version.h"
#include "orchestrator/api/api_server.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/cli/launchers.h"
#include "orchestrator/config/sections.h"
#include "orchestrator/config/serve_config.h"
#include "orchestrator/config/worker_devices.h"
#include "orchestrator/devices/device_choice.h"
#include "orchestrator/fleet/job_holder.h"
#include "orchestrator/service/service.h"
#include "orchestrator/service/watches.h"
#include "orchestrator/web/web_assets.h"

namespace evald::cli {
namespace {

constexpr uint64_t kFilesNeeded = 256;  // half of them for files that are no connections

struct ServeFlags {
  std::string file;
  bool dry_run = false;
  std::vector<std::string> set;
};

ServiceOptions ServiceOptionsOf(const ServeConfig& config, const Common& common) {
  ServiceOptions options;
  options.binaries = common.binaries;
  options.log_level = common.log_level;
  options.state_dir = config.state_dir;
  options.output_dir = config.output_dir;
  options.cache_dir = config.cache_dir;
  options.cache_bytes_max = config.cache_bytes_max;
  options.devices = config.workers.devices;
  options.threads = config.workers.threads;
  options.metric_processes = config.metrics.processes;
  options.sandbox = config.metrics.sandbox;
  options.task_code = config.task_code;
  options.staging_root = config.staging.root;
  options.staging_keep = config.staging.keep_bytes;
  options.linger_s = config.linger_s;
  options.active_max = config.active_runs;
  options.roots = ReadRoots(config.roots);
  options.limits = config.limits;
  options.engines = {config.engine_urls,   config.engine_keys, config.allow_commands,
                     config.allow_engines, config.judge_urls,  config.judge_keys};
  options.runs_per_user_max = config.runs_per_user_max;
  options.unused_per_user_max = config.unused_per_user_max;
  options.paused_per_user_max = config.paused_per_user_max;
  options.launches = !config.launchers.empty();
  return options;
}

// A listener for the agents of launchers, with which people's agents may come too.
std::unique_ptr<AgentDoor> OpenDoor(const ServeConfig& config, Service* service) {
  AgentDoorOptions options;
  options.folder = config.state_dir / kDoorFolder;
  options.address = config.agent_address;
  options.port = config.agent_port;
  options.host = config.agent_host;
  if (!config.tokens.empty()) options.tokens = http::TokenAuth::FromFile(config.tokens, kJobHolder);
  options.job_tokens = &service->job_tokens();
  options.loop = service->loop();
  options.hub = service->agents();
  return std::make_unique<AgentDoor>(std::move(options));
}

void AddLaunchers(const ServeConfig& config, const AgentDoor& door, Service* service) {
  std::vector<Service::LauncherMaker> makers;
  for (const LauncherConfig& launcher : config.launchers) {
    makers.push_back(
        {PoolOptionsOf(launcher, door, config.linger_s),
         [launcher](const std::string& prefix) { return MakeLauncher(launcher, prefix); }});
  }
  service->AddLaunchers(std::move(makers));
}

ApiOptions ApiOptionsOf(const ServeConfig& config, Service* service) {
  ApiOptions options;
  options.agent_files = &service->agents()->files();
  options.connect_agent = ConnectAgents(service->loop(), service->agents());
  options.assets = WebAssets();
  options.version = kEvaldVersion;
  options.http.address = config.address;
  options.http.port = static_cast<uint16_t>(config.port);
  options.http.certificate = config.certificate;
  options.http.key = config.key;
  options.http.hosts = config.hosts;
  options.log_dir = config.state_dir / "logs";
  options.submit_priority_max = config.submit_priority_max;
  if (!config.tokens.empty())
    options.http.tokens = http::TokenAuth::FromFile(config.tokens, kJobHolder);
  for (const ServeWebhook& hook : config.webhooks) {
    const char* secret = hook.secret_env.empty() ? nullptr : std::getenv(hook.secret_env.c_str());
    if (!hook.secret_env.empty() && secret == nullptr) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("webhook {}: the variable {} is not set", hook.url, hook.secret_env));
    }
    options.webhooks.push_back({hook.url, secret == nullptr ? "" : secret, hook.events});
  }
  return options;
}

// "2 workers (cpu:0, cpu:1) and nodes of slurm (at most 16)".
std::string DevicesText(const ServeConfig& config) {
  const std::vector<std::string>& devices = config.workers.devices;
  std::vector<std::string> parts;
  if (!devices.empty() || config.launchers.empty()) {
    parts.push_back(fmt::format("{} worker{} ({})", devices.size(), devices.size() == 1 ? "" : "s",
                                devices.empty() ? "none" : Join(devices, ", ")));
  }
  for (const LauncherConfig& launcher : config.launchers)
    parts.push_back(fmt::format("up to {} nodes of '{}'", launcher.nodes_max, launcher.name));
  return Join(parts, ", ");
}

ExitStatus Serve(const Common& common, const ServeFlags& flags) {
  ServeConfig config = ReadServeConfig(flags.file, flags.set);
  for (LauncherConfig& launcher : config.launchers)
    GiveOptions(CodeOptions(config.metrics, config.task_code), &launcher);
  if (flags.dry_run) {
    ShowJobs(config.launchers, common, config.state_dir, "evald-<service>-");
    return ExitStatus::kDone;
  }
  ChooseWorkers(&config.workers, kAnyEngine, common.binaries);
  const uint64_t files = RaiseOpenFiles(kFilesNeeded);
  MakeFolderOf(flags.file.empty() ? "evald serve" : flags.file, "state_dir", config.state_dir);
  MakeFolderOf(flags.file.empty() ? "evald serve" : flags.file, "cache_dir", config.cache_dir);
  MakeOwnFolder(config.staging.root, "set staging.root to a folder of your own");
  {
    const SocketDirectory usable;
  }  // throws now for a TMPDIR in which no worker could start
  for (LauncherConfig& launcher : config.launchers)
    CompleteLauncher(&launcher, common.binaries, config.state_dir);
  Service service(ServiceOptionsOf(config, common));
  Watches watches(&service, config);
  ApiOptions api_options = ApiOptionsOf(config, &service);
  api_options.watches = &watches;
  api_options.http.connections_max =
      std::min<size_t>(api_options.http.connections_max, files - kFilesNeeded / 2);
  ApiServer api(&service, std::move(api_options));
  service.on_announce = [&](const std::filesystem::path& checkpoint, bool look) {
    return watches.Announce(checkpoint, look);
  };
  std::unique_ptr<AgentDoor> door;
  if (!config.launchers.empty()) {
    door = OpenDoor(config, &service);
    AddLaunchers(config, *door, &service);
  }
  if (common.json) {
    PrintJson({{"url", api.url()}, {"port", api.port()}, {"state_dir", config.state_dir.string()}});
  } else if (!common.quiet) {
    Print(stderr, "evald: serving at {} with {}; runs go to {}\n", api.url(), DevicesText(config),
          config.output_dir.string());
  }
  service.Run();
  if (door) door->Stop();
  api.Stop();
  return ExitStatus::kDone;
}

}  // namespace

void AddServe(Command app, const Common* common, Action* action) {
  auto flags = std::make_shared<ServeFlags>();
  Command command =
      app.AddCommand("serve", "Take runs over REST and work on them, by default two at once");
  command
      .AddOption(
          "serve.yaml", &flags->file,
          "The service's configuration (docs/serve.md); without it: loopback, for this user only")
      .ExistingFile();
  command.AddOption("--set", &flags->set, "Override a value, for example listen=127.0.0.1:9000")
      .Metavar("KEY.PATH=VALUE")
      .OneArgument();
  command.AddFlag("--dry-run", &flags->dry_run,
                  "Show what the launchers would submit for a node, and serve nothing");
  command.Footer(
      "\nExamples:\n  evald serve                                  on loopback, port 8642\n"
      "  evald serve --set listen=127.0.0.1:0 --json  any free port, said on standard output\n"
      "  evald serve serve.yaml                       with watches, webhooks, tokens and TLS\n\n"
      "SIGTERM drains: trials under way are finished, everything else goes on when it is started "
      "again.\n"
      "A second one stops at once; so does a kill, and nothing is lost by it.");
  command.OnChosen([=] { *action = [=] { return Serve(*common, *flags); }; });
}

}  // namespace evald::cli
