#include "worker/server/dialect.h"

#include <stdexcept>
#include <string_view>

namespace evald::server {
namespace {

struct Maker {
  std::string_view engine;
  std::unique_ptr<Dialect> (*make)();
};

constexpr Maker kMakers[] = {
    {"openai", MakeOpenaiDialect},
    {"vllm", MakeVllmDialect},
    {"sglang", MakeSglangDialect},
    {"llama-server", MakeLlamaServerDialect},
};

}  // namespace

std::vector<std::unique_ptr<ScoringWay>> Dialect::ScoringWays(const CompletionsStyle& style) const {
  std::vector<std::unique_ptr<ScoringWay>> ways;
  ways.push_back(EchoWay(style));
  return ways;
}

std::unique_ptr<Dialect> MakeDialect(const std::string& engine) {
  for (const Maker& maker : kMakers) {
    if (maker.engine == engine) return maker.make();
  }
  throw std::logic_error("no dialect of engine " + engine);
}

}  // namespace evald::server
