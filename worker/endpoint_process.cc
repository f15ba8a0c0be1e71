#include "worker/endpoint_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <optional>

#include "base/device_name.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/open_files.h"
#include "base/print.h"
#include "base/text.h"
#include "worker/device_lock.h"
#include "worker/endpoint/key.h"

namespace evald {
namespace {

constexpr uint64_t kFilesNeeded = 256;  // half of them for files that are no connections
constexpr std::chrono::seconds kGpuPatience{3};
// The longest answer; a call that takes longer is ended.
constexpr std::chrono::hours kAnswer{1};

// A pipe that wakes the main thread. A signal handler may use only what is as plain as this.
int end_pipe[2] = {-1, -1};

void AskToEnd(char why) {
  const int kept = errno;
  static_cast<void>(!::write(end_pipe[1], &why, 1));
  errno = kept;
}

void OnSignal(int) { AskToEnd('s'); }

// The first signal ends the endpoint in order, the second one at once.
void HandleSignals() {
  if (::pipe2(end_pipe, O_CLOEXEC) != 0) ThrowErrno("the endpoint", "pipe", errno);
  struct sigaction action{};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESETHAND;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

char WaitForEnd() {
  char why = 0;
  while (::read(end_pipe[0], &why, 1) < 0 && errno == EINTR) {
  }
  return why;
}

void TakeGpu(const std::string& device, std::optional<DeviceLock>* lock) {
  if (!IsGpu(device)) return;
  lock->emplace(DeviceLock::DefaultFolder(), device);
  if ((*lock)->Take(kGpuPatience)) return;
  throw Error(ErrorKind::kInfrastructure, (*lock)->HeldBy(),
              "wait for its end, or name another GPU");
}

std::string Example(const std::string& url, const std::string& socket, const std::string& key,
                    const std::string& model) {
  const std::string to = socket.empty()
                             ? url + "/v1/completions"
                             : "--unix-socket " + socket + " http://localhost/v1/completions";
  const std::string authorization =
      key.empty() ? "" : fmt::format(" -H \"Authorization: Bearer {}\"", key);
  return fmt::format("curl {}{} -d '{}'", to, authorization,
                     ToLine({{"model", model}, {"prompt", "Hello"}, {"max_tokens", 16}}));
}

void Announce(const EndpointProcess& options, const std::string& url, const std::string& model,
              int max_length, const std::string& key) {
  const std::string socket = options.api.socket.string();
  if (options.json) {
    Json said = {
        {"url", url}, {"model", model}, {"max_model_len", max_length}, {"pid", ::getpid()}};
    said["key"] = key.empty() || !options.key_file.empty() ? Json() : Json(key);
    said["key_file"] = options.key_file.empty() ? Json() : Json(options.key_file.string());
    std::printf("%s\n", ToLine(said).c_str());
    std::fflush(stdout);
  }
  if (options.quiet || options.json) return;
  const std::string shown =
      options.key_file.empty() ? key : fmt::format("$(cat {})", options.key_file.string());
  Print(stderr, "evald: '{}' is served at {}{} (context: {} tokens)\n", model, url,
        socket.empty() ? "/v1" : "", max_length);
  if (!key.empty()) Print(stderr, "  export OPENAI_API_KEY={}\n", shown);
  if (socket.empty()) Print(stderr, "  export OPENAI_BASE_URL={}/v1\n", url);
  Print(stderr, "  {}\n", Example(url, socket, key.empty() ? "" : "$OPENAI_API_KEY", model));
}

std::string KeyFor(const EndpointProcess& options) {
  if (!options.key_file.empty()) return endpoint::ReadOrMakeKey(options.key_file);
  return options.api.socket.empty() ? endpoint::MakeKey() : "";
}

}  // namespace

int RunEndpoint(const EndpointProcess& options, EngineMaker make_engine) {
  endpoint::EndpointOptions api = options.api;
  api.key = KeyFor(options);
  api.time.answer = kAnswer;
  const uint64_t files = RaiseOpenFiles(kFilesNeeded);
  api.connections_max = std::min<size_t>(api.connections_max, files - kFilesNeeded / 2);
  std::optional<DeviceLock> lock;
  TakeGpu(options.engine.device, &lock);
  const std::unique_ptr<Engine> engine = make_engine(options.engine);
  engine->Load(options.checkpoint);
  endpoint::ServedModel model =
      endpoint::ReadServedModel(options.checkpoint, options.model_name, engine->Info());
  model.reports_tokens = engine->reports_tokens();
  const std::string name = model.name;
  const int max_length = model.max_length;
  HandleSignals();
  int status = 0;
  {
    endpoint::Endpoint endpoint(engine.get(), std::move(model), api, [] { AskToEnd('b'); });
    Announce(options, endpoint.url(), name, max_length, api.key);
    if (WaitForEnd() == 'b') status = 3;
    if (!options.quiet && !options.json) Print(stderr, "evald: the endpoint ends\n");
    endpoint.Stop();
  }
  // The resources of a broken device cannot be released; trying might hang or crash.
  if (engine->Broken()) ::_exit(status);
  return status;
}

}  // namespace evald
