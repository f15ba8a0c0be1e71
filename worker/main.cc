#include <signal.h>

#include <cstdio>
#include <filesystem>
#include <vector>

#include "base/command_line.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/print.h"
#include "base/text.h"
#include "engines/engines.h"
#include "evald/error.h"
#include "protocol/parent_death.h"
#include "worker/affinity.h"
#include "worker/endpoint_process.h"
#include "worker/engine/settings.h"
#include "worker/make_engine.h"
#include "worker/native_devices.h"
#include "worker/process.h"

namespace {

struct Arguments {
  evald::WorkerOptions worker;
  std::string settings = "{}";
  std::string cpus;
  std::vector<std::filesystem::path> read_roots;
  std::string log_level = "info";
  bool check_settings = false;
  bool check_programs = false;
  bool list_devices = false;
  pid_t parent = 0;
  evald::EndpointProcess endpoint;
  int port = 0;
};

// The options of `evald endpoint`, which becomes this program.
void DeclareEndpoint(evald::Command app, Arguments* line) {
  evald::EndpointProcess& endpoint = line->endpoint;
  app.AddOption("--endpoint", &endpoint.checkpoint,
                "serve this checkpoint over an OpenAI-compatible API, for no agent");
  app.AddOption("--port", &line->port, "its port on 127.0.0.1; 0: any free one").Within(0, 65535);
  app.AddOption("--api-socket", &endpoint.api.socket, "a Unix socket instead of a port");
  app.AddOption("--key-file", &endpoint.key_file, "the file with the callers' key");
  app.AddOption("--model-name", &endpoint.model_name, "the name that callers give the checkpoint");
  app.AddFlag("--json", &endpoint.json, "print where it serves as one JSON document");
  app.AddFlag("--quiet", &endpoint.quiet, "print nothing for people");
}

void Declare(evald::Command app, Arguments* line) {
  evald::EngineOptions& engine = line->worker.engine;
  engine.device = "cpu:0";
  app.AddOption("--socket", &line->worker.socket, "the agent's Unix socket");
  app.AddOption("--id", &line->worker.id, "what the agent calls this worker");
  app.AddOption("--engine", &engine.name, evald::Join(evald::EngineNames(), ", "));
  app.AddOption("--settings", &line->settings,
                "the engine's settings, as JSON; - reads them from standard input");
  app.AddOption("--device", &engine.device, "cpu:0 (the default), cuda:<uuid>");
  app.AddOption("--threads", &engine.threads, "CPU threads the engine may use").Positive();
  app.AddOption("--seed", &engine.seed, "keys the sampling generator");
  app.AddOption(
      "--read-root", &line->read_roots,
      "a folder below which it reads the files that a run names; any number; none: anywhere");
  app.AddOption("--cpu-affinity", &line->cpus, "CPUs to run on, such as 0-3,8");
  app.AddOption("--parent", &line->parent, "process id of the agent, whose end ends this worker");
  app.AddOption("--log-level", &line->log_level, "trace, debug, info, warn, error or off");
  app.AddFlag("--check-settings", &line->check_settings,
              "only say whether the engine takes its settings: {\"ok\":true}, or a key and what is "
              "wrong with it");
  app.AddFlag("--check-programs", &line->check_programs,
              "with --check-settings: the programs that the engine starts must be on this host");
  app.AddFlag("--list-devices", &line->list_devices,
              "only print the GPUs that it would compute on, as JSON");
}

// Throws if an argument is missing that this use of the worker needs.
void CheckWhole(const Arguments& line) {
  if (line.list_devices) return;
  if (line.worker.engine.name.empty())
    throw evald::Error(evald::ErrorKind::kUsage, "--engine is required",
                       "see 'evald-worker --help'");
  if (!line.check_settings && line.endpoint.checkpoint.empty() &&
      (line.worker.socket.empty() || line.worker.id.empty())) {
    throw evald::Error(evald::ErrorKind::kUsage, "--socket and --id are required",
                       "see 'evald-worker --help'");
  }
}

// Every user may read a command line, so the agent passes the settings on standard input.
std::string SettingsText(const std::string& given) {
  return given == "-" ? evald::ReadFile("/dev/stdin") : given;
}

// Reads the engine's options that have a form of their own. An error is kept for the agent, which
// is connected later.
void ReadEngine(Arguments* line) {
  try {
    line->worker.engine.roots = evald::ReadRoots(line->read_roots);
    line->worker.engine.settings = evald::ParseJson(SettingsText(line->settings), "--settings");
  } catch (const evald::Error& e) {
    line->worker.unreadable = e;
  }
}

// Makes the engine, which loads nothing yet, and prints its verdict on its settings
// (docs/protocol.md, "Settings").
int CheckSettings(const evald::WorkerOptions& worker, bool programs) {
  evald::Json answer = {{"ok", true}};
  try {
    if (worker.unreadable) throw *worker.unreadable;
    const std::unique_ptr<evald::Engine> engine = evald::MakeEngine(worker.engine);
    if (programs) engine->RequirePrograms();
  } catch (const evald::SettingError& e) {
    answer = {{"key", e.key()}, {"error", e.problem()}, {"remedy", e.remedy()}};
  } catch (const evald::Error& e) {
    answer = {{"key", nullptr}, {"error", e.message()}, {"remedy", e.remedy()}};
  }
  std::printf("%s\n", evald::ToLine(answer).c_str());
  return static_cast<int>(answer.contains("ok") ? evald::ExitStatus::kDone
                                                : evald::ExitStatus::kUsage);
}

int ServeEndpoint(Arguments* line) {
  if (line->worker.unreadable) throw *line->worker.unreadable;
  line->endpoint.engine = line->worker.engine;
  line->endpoint.api.port = static_cast<uint16_t>(line->port);
  return evald::RunEndpoint(line->endpoint, evald::MakeEngine);
}

}  // namespace

int main(int argc, char** argv) {
  evald::CommandLine app("evald-worker",
                         "evald-worker: generates for an evald agent, which starts it");
  Arguments line;
  Declare(app, &line);
  DeclareEndpoint(app, &line);
  if (const int status = app.ParseOrStatus(argc, argv); status >= 0) return status;
  try {
    CheckWhole(line);
    if (line.list_devices) {
      std::printf("%s\n", evald::ToLine(evald::VisibleDevices()).c_str());
      return static_cast<int>(evald::ExitStatus::kDone);
    }
    const bool endpoint = !line.endpoint.checkpoint.empty();
    evald::SetUpLog(endpoint ? "evald endpoint" : "evald-worker " + line.worker.id, line.log_level);
    ReadEngine(&line);
    if (line.check_settings) return CheckSettings(line.worker, line.check_programs);
    ::signal(SIGPIPE, SIG_IGN);
    if (endpoint) return ServeEndpoint(&line);
    evald::protocol::DieWithParent(SIGKILL, line.parent);
    if (!line.cpus.empty()) evald::SetCpuAffinity(line.cpus);
    return evald::RunWorker(line.worker, evald::MakeEngine);
  } catch (const evald::Error& e) {
    if (line.endpoint.checkpoint.empty()) {
      evald::log::Error("{}", e.what());
    } else {
      evald::Print(stderr, "evald: error: {}\n", e.what());
    }
    return static_cast<int>(evald::ExitStatusFor(e.kind()));
  }
}
