#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/clock.h"
#include "base/cores.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/open_files.h"
#include "base/print.h"
#include "base/text.h"
#include "orchestrator/agent/agent.h"
#include "orchestrator/agent/job_end.h"
#include "orchestrator/agent/launched_root.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/config/eval_config.h"
#include "orchestrator/devices/device_choice.h"
#include "orchestrator/service/process_id.h"
#include "orchestrator/staging/root.h"
#include "protocol/agent_join.h"
#include "protocol/agent_messages.h"

namespace evald::cli {
namespace {

struct AgentFlags {
  std::string server, token_file, ca_file, name, root, staging_root;
  std::vector<std::string> devices;
  int devices_per_worker = 1;
  int threads = 0;
  int metric_processes = 0;
  uint64_t staging_keep = 0;
  std::string sandbox = "{}";
  std::string task_code = "{}";
  std::string peer_listen, peer_host;
  uint64_t peer_rate = 0;
  double linger_s = 600;
  double ends_in_s = 0;
  std::string socket, config_id, judge_cache;  // for the agent that `evald serve` starts
};

std::string HostName() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  std::string host = Split(name, '.')[0];
  std::erase_if(host, [](char c) { return !protocol::IsHostName(std::string_view(&c, 1)); });
  return host;
}

// The devices to use. For its own host, the service has chosen them.
std::vector<std::string> DevicesOf(const Common& common, const AgentFlags& flags) {
  const std::vector<std::string> asked =
      flags.devices.empty() ? std::vector<std::string>{"auto"} : flags.devices;
  const std::string wrong = WrongWithDevices(asked);
  if (!wrong.empty()) throw Error(ErrorKind::kUsage, "--devices: " + wrong);
  if (!flags.socket.empty())
    return asked == std::vector<std::string>{"none"} ? std::vector<std::string>{} : asked;
  return ChooseDevices({asked, flags.devices_per_worker, 1}, kAnyEngine,
                       [&] { return ListGpus(common.binaries); });
}

// What the launcher of this agent says, if there is one. Programs that this process starts do not
// see it.
std::optional<protocol::AgentJoin> TakeJoin(const AgentFlags& flags) {
  char* text = std::getenv(protocol::kJoinVariable);
  if (text == nullptr) return std::nullopt;
  const std::string said = text;
  ::explicit_bzero(text, said.size());  // /proc/<pid>/environ shows these bytes
  ::unsetenv(protocol::kJoinVariable);
  if (!flags.server.empty() || !flags.socket.empty()) return std::nullopt;
  protocol::AgentJoin join = protocol::DecodeJoin(said);
  const char* nodes = std::getenv("SLURM_JOB_NUM_NODES");
  const char* node = std::getenv("SLURM_NODEID");
  if (nodes != nullptr && node != nullptr && std::string(nodes) != "1")
    join.name += fmt::format("-{}", node);
  return join;
}

// Seconds since 1970 that a variable of Slurm's holds; 0 if it is not set.
double TimeIn(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return 0;
  int64_t seconds = 0;
  const char* const end = text + std::strlen(text);
  const auto read = std::from_chars(text, end, seconds);
  if (read.ec != std::errc() || read.ptr != end || seconds < 0) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} '{}': expected seconds since 1970", name, PrintableLine(text)),
                "unset it, or give --ends-in");
  }
  return static_cast<double>(seconds);
}

// When this host ends, in seconds since 1970; 0: no end is known. In a job of Slurm it is the end
// of the job. The agent of the service's own host tells no end: the service ends with it.
double EndOf(const AgentFlags& flags) {
  if (!flags.socket.empty()) return 0;
  if (flags.ends_in_s > 0) return WallSeconds() + flags.ends_in_s;
  const double ends_at = TimeIn("SLURM_JOB_END_TIME");  // since Slurm 23.02
  if (ends_at == 0) return 0;
  return EndByOwnClock(TimeIn("SLURM_JOB_START_TIME"), ends_at, WallSeconds());
}

AgentOptions OptionsOf(const Common& common, const AgentFlags& flags) {
  if (flags.server.empty() == flags.socket.empty()) {
    throw Error(
        ErrorKind::kUsage,
        "--server is missing: the address of the service, for example https://eval.example:8642");
  }
  const int cores = UsableCores();
  AgentOptions options;
  options.orchestrator = {flags.socket, flags.server, "", flags.ca_file};
  while (options.orchestrator.server.ends_with('/')) options.orchestrator.server.pop_back();
  if (!flags.token_file.empty()) options.orchestrator.token = Trim(ReadFile(flags.token_file));
  options.name = !flags.socket.empty() ? kLocalHost : flags.name.empty() ? HostName() : flags.name;
  if (flags.socket.empty() && (!protocol::IsHostName(options.name) || options.name == kLocalHost)) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("--name '{}': expected up to 63 letters, digits, '-' and '_', and not '{}'",
                    options.name, kLocalHost));
  }
  options.binaries = common.binaries;
  options.root =
      flags.root.empty() ? DefaultStateDir() / "agent" : std::filesystem::absolute(flags.root);
  options.staging_root = flags.staging_root.empty() ? DefaultStagingRoot()
                                                    : std::filesystem::absolute(flags.staging_root);
  options.staging_keep = flags.staging_keep;
  options.devices = DevicesOf(common, flags);
  options.threads =
      flags.threads > 0 || !flags.socket.empty()
          ? flags.threads
          : std::max(1, cores / std::max(1, static_cast<int>(options.devices.size())));
  options.metric_processes = flags.metric_processes > 0 ? flags.metric_processes : cores;
  options.sandbox = SandboxOptionsFromJson(ParseJson(flags.sandbox, "--sandbox"), "--sandbox");
  options.task_code = TaskCodeFromJson(ParseJson(flags.task_code, "--task-code"), "--task-code");
  options.judge_cache =
      flags.judge_cache.empty() ? options.root / "judge" : std::filesystem::path(flags.judge_cache);
  options.peer_listen = flags.peer_listen;
  options.peer_host = flags.peer_host;
  options.peer_rate = flags.peer_rate;
  options.config_id = flags.config_id;
  options.linger_s = flags.linger_s;
  options.ends_at = EndOf(flags);
  return options;
}

// The options of an agent that a launcher starts. Its folder is of this node and for this start
// alone: the user's home may be shared by all nodes.
AgentOptions LaunchedOptions(const Common& common, AgentFlags flags,
                             const protocol::AgentJoin& join, const LaunchedRoot& root) {
  flags.server = join.server;
  flags.name = join.name;
  flags.root = root.path();
  AgentOptions options = OptionsOf(common, flags);
  WriteFileAtomic(root.path() / "authority.pem", join.authority);
  options.orchestrator.ca_file = root.path() / "authority.pem";
  options.orchestrator.token = join.token;
  options.linger_s = join.linger_s;
  options.launched = true;
  return options;
}

ExitStatus Work(const Common& common, const AgentFlags& flags) {
  const std::optional<protocol::AgentJoin> join = TakeJoin(flags);
  std::optional<LaunchedRoot> root;
  if (join) root.emplace(join->name);
  AgentOptions options =
      join ? LaunchedOptions(common, flags, *join, *root) : OptionsOf(common, flags);
  RaiseOpenFiles(
      OpenFilesFor(options.devices.size() + static_cast<size_t>(options.metric_processes)));
  std::string offer;
  if (flags.socket.empty() && !common.quiet) {
    const std::string lends =
        fmt::format("{} device{} to {}", options.devices.size(),
                    options.devices.size() == 1 ? "" : "s", options.orchestrator.server);
    offer = fmt::format("evald: agent '{}' offers {}", options.name, lends);
    options.taken = [lends, name = options.name] {
      Print(stderr, "evald: agent '{}' lends {}\n", name, lends);
    };
  }
  Agent agent(std::move(options));  // refuses a wrong address
  if (!offer.empty()) Print(stderr, "{}\n", offer);
  agent.Run();
  return ExitStatus::kDone;
}

}  // namespace

void AddAgent(Command app, const Common* common, Action* action) {
  auto flags = std::make_shared<AgentFlags>();
  Command command = app.AddCommand("agent", "Lend this host's devices to a service on another one");
  command.AddOption("--server", &flags->server, "The service, https://host:port").Metavar("URL");
  command.AddOption("--token-file", &flags->token_file, "A file with a token of the role worker")
      .Metavar("FILE")
      .ExistingFile();
  command.AddOption("--ca", &flags->ca_file, "Certificates to trust (PEM) instead of the system's")
      .Metavar("FILE")
      .ExistingFile();
  command
      .AddOption("--name", &flags->name, "What this host is called there; default: its host name")
      .Metavar("NAME");
  command
      .AddOption(
          "--root", &flags->root,
          "The agent's own folder, on this host's own disk; default: ~/.local/state/evald/agent")
      .Metavar("DIR");
  command
      .AddOption("--staging-root", &flags->staging_root,
                 "Where checkpoints are staged; default: /dev/shm/evald-<uid>")
      .Metavar("DIR");
  command
      .AddOption("--staging-keep", &flags->staging_keep,
                 "Bytes of checkpoints that may stay staged without a use")
      .Metavar("BYTES");
  command
      .AddOption("--devices", &flags->devices,
                 "A worker for each: cuda:<uuid>,…, cuda:all, cpu:0,cpu:1,…, none, or auto, the "
                 "default: all GPUs, else cpu:0")
      .CommaSeparated()
      .Metavar("LIST");
  command
      .AddOption("--devices-per-worker", &flags->devices_per_worker,
                 "GPUs of each worker, for engines with a server (vllm, sglang); default 1")
      .Metavar("N")
      .Within(1, 64);
  command
      .AddOption("--threads", &flags->threads, "Threads of each worker; default: the cores, shared")
      .Metavar("N")
      .Within(1, 1024);
  command.AddOption("--metric-processes", &flags->metric_processes, "Default: as many as cores")
      .Metavar("N")
      .Within(1, 1024);
  command
      .AddOption("--sandbox", &flags->sandbox,
                 "Limits on code that is run, as metrics.sandbox, in JSON")
      .Metavar("JSON");
  command
      .AddOption("--task-code", &flags->task_code,
                 "How Python code of task files is run, in JSON: {\"allowed\": \"allow\", "
                 "\"python\": \"/venv/bin/python\"} (docs/task-code.md)")
      .Metavar("JSON");
  command
      .AddOption(
          "--peer-listen", &flags->peer_listen,
          "Where other agents fetch checkpoints from this host: an IP address and a port, or "
          "off; default: all addresses, any port (docs/staging.md)")
      .Metavar("HOST:PORT");
  command
      .AddOption("--peer-host", &flags->peer_host,
                 "What other agents call this host; default: its address towards the service")
      .Metavar("NAME");
  command
      .AddOption("--peer-rate", &flags->peer_rate,
                 "Bytes a second that other agents get from this host at most; default: no limit")
      .Metavar("BYTES");
  command
      .AddOption("--linger", &flags->linger_s,
                 "Seconds without a service after which workers end; default 600")
      .Metavar("S")
      .NonNegative();
  command
      .AddOption(
          "--ends-in", &flags->ends_in_s,
          "Seconds until this host ends, for example at its job's time limit; work is handed "
          "back before (docs/scheduling.md). Default: the end of the Slurm job, if there is "
          "one ($SLURM_JOB_END_TIME)")
      .Metavar("S")
      .NonNegative();
  command.AddOption("--socket", &flags->socket).Group("");
  command.AddOption("--config-id", &flags->config_id).Group("");
  command.AddOption("--judge-cache", &flags->judge_cache).Group("");
  command.Footer(
      "\nExamples:\n"
      "  evald agent --server https://eval.example:8642 --token-file worker.token\n"
      "  evald agent --server https://10.0.0.1:8642 --token-file t --ca ca.pem --name gpu1 "
      "--devices cpu:0,cpu:1\n\n"
      "A launcher of the service (docs/slurm.md) starts agents with the variable EVALD_JOIN in "
      "place of these\n"
      "options.\n\n"
      "The agent calls the service and keeps calling; its workers stay at work while the service "
      "is away, and\n"
      "the next service finds them warm. No file system need be shared: checkpoints, prepared "
      "tasks and results\n"
      "go over the same address. SIGTERM finishes what is under way; a second one ends at once.");
  command.OnChosen([=] { *action = [=] { return Work(*common, *flags); }; });
}

}  // namespace evald::cli
