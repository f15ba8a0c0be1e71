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

// As vLLM (vllm/entrypoints/serve/tokenize/protocol.py) and SGLang have it.
Json Dialect::TokenizeBody(const std::string& model, const std::string& text) const {
  return {{"model", model}, {"prompt", text}, {"add_special_tokens", true}};
}

int IntegerAt(const Json& json, std::initializer_list<const char*> keys) {
  const Json* at = &json;
  for (const char* key : keys) {
    if (!at->is_object() || !at->contains(key)) return 0;
    at = &(*at)[key];
  }
  return at->is_number_integer() ? at->get<int>() : 0;
}

std::unique_ptr<Dialect> MakeDialect(const std::string& engine) {
  for (const Maker& maker : kMakers) {
    if (maker.engine == engine) return maker.make();
  }
  throw std::logic_error("no dialect of engine " + engine);
}

}  // namespace evald::server
