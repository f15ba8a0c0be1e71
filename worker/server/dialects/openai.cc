// Any server with OpenAI's completions API. Its command stands in eval.yaml.
#include "worker/server/dialect.h"

namespace evald::server {
namespace {

class Openai : public Dialect {
 public:
  Launch LaunchOf(const Options& options, const LaunchSetup& setup) const override {
    Launch launch;
    for (const std::string& word : options.command)
      launch.command.push_back(Expand(word, setup.checkpoint, setup.port));
    for (const auto& [name, value] : options.environment)
      launch.environment[name] = Expand(value, setup.checkpoint, setup.port);
    return launch;
  }
};

}  // namespace

std::unique_ptr<Dialect> MakeOpenaiDialect() { return std::make_unique<Openai>(); }

}  // namespace evald::server
