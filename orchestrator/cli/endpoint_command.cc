#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/cores.h"
#include "base/jsonl.h"
#include "base/text.h"
#include "engines/engines.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/devices/device_choice.h"
#include "orchestrator/devices/gpu_listing.h"
#include "orchestrator/devices/programs.h"

namespace evald::cli {
namespace {

constexpr const char* kEngines[] = {"native", "emulated"};  // the others have servers of their own

struct EndpointFlags {
  std::string checkpoint;
  std::string engine = kDefaultEngine;
  std::vector<std::string> set;
  std::string device = "auto";
  int threads = 0;
  int port = 0;
  std::string socket, key_file, model_name;
};

// KEY=VALUE; the value as JSON if it is that, else as text: concurrency=64, kv_cache=4GiB.
Json SettingsOf(const EndpointFlags& flags) {
  Json settings = Json::object();
  for (const std::string& assignment : flags.set) {
    const size_t equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error(
          ErrorKind::kUsage,
          fmt::format("--set {}: expected KEY=VALUE, for example kv_cache=4GiB", assignment));
    }
    const std::string value = assignment.substr(equals + 1);
    const Json parsed = Json::parse(value, nullptr, false);
    settings[assignment.substr(0, equals)] = parsed.is_discarded() ? Json(value) : parsed;
  }
  if (const auto problem = FindSettingProblem(flags.engine, settings)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--set: key '{}': {}", problem->key, problem->problem),
                problem->remedy);
  }
  return settings;
}

std::string DeviceOf(const Common& common, const EndpointFlags& flags) {
  const std::vector<std::string> asked = {flags.device == "cpu" ? "cpu:0" : flags.device};
  const std::string wrong = WrongWithDevices(asked);
  if (!wrong.empty()) throw Error(ErrorKind::kUsage, "--device: " + wrong);
  return ChooseDevices({asked, 1, 1}, flags.engine, [&] { return ListGpus(common.binaries); })
      .front();
}

void Require(const EndpointFlags& flags) {
  if (std::find(std::begin(kEngines), std::end(kEngines), flags.engine) == std::end(kEngines)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--engine {}: expected native or emulated", flags.engine),
                "vllm, sglang and llama-server serve such an API themselves");
  }
  if (!flags.socket.empty() && flags.port != 0)
    throw Error(ErrorKind::kUsage, "--socket and --port exclude each other");
}

// The command line of the worker program that this process becomes.
std::vector<std::string> CommandLineOf(const Common& common, const EndpointFlags& flags,
                                       const std::string& device, const std::string& program) {
  const int cores = UsableCores();
  std::vector<std::string> line = {program,
                                   "--endpoint",
                                   flags.checkpoint,
                                   "--engine",
                                   flags.engine,
                                   "--settings",
                                   ToLine(SettingsOf(flags)),
                                   "--device",
                                   device,
                                   "--threads",
                                   std::to_string(flags.threads > 0 ? flags.threads : cores),
                                   "--port",
                                   std::to_string(flags.port),
                                   "--log-level",
                                   common.log_level};
  const auto add = [&](const char* option, const std::string& value) {
    if (value.empty()) return;
    line.emplace_back(option);
    line.push_back(value);
  };
  add("--api-socket", flags.socket);
  add("--key-file", flags.key_file);
  add("--model-name", flags.model_name);
  if (common.json) line.emplace_back("--json");
  if (common.quiet) line.emplace_back("--quiet");
  return line;
}

ExitStatus ServeEndpoint(const Common& common, const EndpointFlags& flags) {
  Require(flags);
  const std::string device = DeviceOf(common, flags);
  const std::string program =
      ProgramPath(common.binaries, WorkerProgram(flags.engine, device)).string();
  const std::vector<std::string> line = CommandLineOf(common, flags, device, program);
  std::vector<char*> arguments;
  for (const std::string& word : line) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execv(program.c_str(), arguments.data());
  throw Error(ErrorKind::kInfrastructure, fmt::format("{}: {}", program, std::strerror(errno)),
              "see whether evald is installed whole: its programs lie in one folder");
}

}  // namespace

void AddEndpoint(Command app, const Common* common, Action* action) {
  auto flags = std::make_shared<EndpointFlags>();
  Command command = app.AddCommand(
      "endpoint", "Serve a checkpoint over an OpenAI-compatible API, on this machine only");
  command.AddOption("CHECKPOINT", &flags->checkpoint, "A folder in Hugging Face layout")
      .Required()
      .ExistingFolder();
  command.AddOption("--port", &flags->port, "Port on 127.0.0.1; 0, the default: any free one")
      .Metavar("PORT")
      .Within(0, 65535);
  command
      .AddOption("--socket", &flags->socket,
                 "A Unix socket instead of a port, for this user only; without a key unless "
                 "--key-file is given")
      .Metavar("PATH");
  command
      .AddOption("--key-file", &flags->key_file,
                 "The key that callers send; made if the file is not there. Without it: a new "
                 "random key, which is shown")
      .Metavar("FILE");
  command
      .AddOption("--model-name", &flags->model_name,
                 "The model's name in calls; default: the folder's. Its path is taken too")
      .Metavar("NAME");
  command.AddOption("--engine", &flags->engine, "native (the default), or emulated for tests")
      .Metavar("NAME");
  command.AddOption("--set", &flags->set, "A setting of the engine (docs/engines.md)")
      .Metavar("KEY=VALUE")
      .OneArgument();
  command
      .AddOption("--device", &flags->device,
                 "auto (the default: a GPU if there is one), cpu, or cuda:<uuid>")
      .Metavar("DEVICE");
  command.AddOption("--threads", &flags->threads, "CPU threads; default: one for each processor")
      .Metavar("N")
      .Positive();
  command.Footer(
      "\nExamples:\n"
      "  evald endpoint checkpoints/step-01200                     any free port, a new key\n"
      "  evald endpoint step-01200 --port 8000 --key-file key      the key stays in the file\n"
      "  evald endpoint step-01200 --socket /tmp/model.sock        for this user only, no key\n"
      "  evald endpoint step-01200 --set max_length=4096 --device cpu --threads 8\n"
      "  lm_eval --model local-completions --model_args "
      "model=checkpoints/step-01200,base_url=$OPENAI_BASE_URL/completions --tasks mmlu\n\n"
      "SIGINT or SIGTERM ends it; a second one ends it at once. docs/endpoint.md lists what is "
      "served.");
  command.OnChosen([=] { *action = [=] { return ServeEndpoint(*common, *flags); }; });
}

}  // namespace evald::cli
