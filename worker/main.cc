#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "evald/error.h"
#include "protocol/parent_death.h"
#include "worker/affinity.h"
#include "worker/native_devices.h"
#include "worker/process.h"
#include "worker/settings.h"

namespace {

struct CommandLine {
  evald::WorkerOptions worker;
  std::string settings = "{}";
  std::string cpus;
  std::vector<std::filesystem::path> read_roots;
  std::string log_level = "info";
  bool check_settings = false;
  bool list_devices = false;
  pid_t parent = 0;
};

void Declare(CLI::App* app, CommandLine* line) {
  evald::EngineOptions& engine = line->worker.engine;
  app->add_option("--socket", line->worker.socket, "the agent's Unix socket");
  app->add_option("--id", line->worker.id, "what the agent calls this worker");
  app->add_option("--engine", engine.name, "native, openai, replay or emulated");
  app->add_option("--settings", line->settings, "the engine's settings, as JSON; - reads them from standard input");
  app->add_option("--device", engine.device, "cpu:0, cuda:<uuid>")->default_val("cpu:0");
  app->add_option("--threads", engine.threads, "CPU threads the engine may use")
      ->check(CLI::PositiveNumber);
  app->add_option("--seed", engine.seed, "keys the sampling generator");
  app->add_option("--read-root", line->read_roots,
                  "a folder below which it reads the files that a run names; any number; none: anywhere");
  app->add_option("--cpu-affinity", line->cpus, "CPUs to run on, such as 0-3,8");
  app->add_option("--parent", line->parent, "process id of the agent, whose end ends this worker");
  app->add_option("--log-level", line->log_level, "trace, debug, info, warn, error or off");
  app->add_flag(
      "--check-settings", line->check_settings,
      "only say whether the engine takes its settings: {\"ok\":true}, or a key and what is "
      "wrong with it");
  app->add_flag("--list-devices", line->list_devices,
                "only print the GPUs that it would compute on, as JSON");
}

// Throws CLI::RequiredError for what this way of calling it needs.
void CheckWhole(const CommandLine& line) {
  if (line.list_devices) return;
  if (line.worker.engine.name.empty()) throw CLI::RequiredError("--engine");
  if (!line.check_settings && (line.worker.socket.empty() || line.worker.id.empty())) {
    throw CLI::RequiredError("--socket and --id");
  }
}

// Every user may read a command line, so the agent gives the settings on standard input.
std::string SettingsText(const std::string& given) {
  return given == "-" ? evald::ReadFile("/dev/stdin") : given;
}

// What of the engine's options has a form of its own. That it has not is for the agent to hear, which is connected later.
void ReadEngine(CommandLine* line) {
  try {
    line->worker.engine.roots = evald::ReadRoots(line->read_roots);
    line->worker.engine.settings = evald::ParseJson(SettingsText(line->settings), "--settings");
  } catch (const evald::Error& e) {
    line->worker.unreadable = e;
  }
}

// Makes the engine, which loads nothing yet, and says on standard output what it thinks of its
// settings (docs/protocol.md, "Settings").
int CheckSettings(const evald::WorkerOptions& worker) {
  evald::Json answer = {{"ok", true}};
  try {
    if (worker.unreadable) throw *worker.unreadable;
    evald::MakeEngine(worker.engine);
  } catch (const evald::SettingError& e) {
    answer = {{"key", e.key()}, {"error", e.problem()}, {"remedy", e.remedy()}};
  } catch (const evald::Error& e) {
    answer = {{"key", nullptr}, {"error", e.message()}, {"remedy", e.remedy()}};
  }
  std::printf("%s\n", evald::ToLine(answer).c_str());
  return static_cast<int>(answer.contains("ok") ? evald::ExitStatus::kDone
                                                : evald::ExitStatus::kUsage);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("evald-worker: generates for an evald agent, which starts it");
  CommandLine line;
  Declare(&app, &line);
  try {
    app.parse(argc, argv);
    CheckWhole(line);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : static_cast<int>(evald::ExitStatus::kUsage);
  }
  try {
    if (line.list_devices) {
      std::printf("%s\n", evald::ToLine(evald::VisibleDevices()).c_str());
      return static_cast<int>(evald::ExitStatus::kDone);
    }
    evald::SetUpLog("evald-worker " + line.worker.id, line.log_level);
    ReadEngine(&line);
    if (line.check_settings) return CheckSettings(line.worker);
    evald::protocol::DieWithParent(SIGKILL, line.parent);
    ::signal(SIGPIPE, SIG_IGN);
    if (!line.cpus.empty()) evald::SetCpuAffinity(line.cpus);
    return evald::RunWorker(line.worker);
  } catch (const evald::Error& e) {
    evald::log::Error("{}", e.what());
    return static_cast<int>(evald::ExitStatusFor(e.kind()));
  }
}
