#include "engines/engines.h"

#include <fmt/format.h>

#include <stdexcept>

#include "base/text.h"
#include "evald/error.h"

// Every engine, in the order in which messages name them. `Native` is described by NativeKind() in
// native.cc.
#define EVALD_ENGINES(engine)                                                                  \
  engine(Native) engine(Vllm) engine(Sglang) engine(LlamaServer) engine(Openai) engine(Replay) \
      engine(Emulated)

namespace evald {

#define EVALD_DECLARE(Name) EngineKind Name##Kind();
EVALD_ENGINES(EVALD_DECLARE)
#undef EVALD_DECLARE

const std::vector<EngineKind>& Engines() {
#define EVALD_LIST(Name) Name##Kind(),
  static const std::vector<EngineKind> kAll = {EVALD_ENGINES(EVALD_LIST)};
#undef EVALD_LIST
  return kAll;
}

std::vector<std::string> EngineNames() {
  std::vector<std::string> names;
  for (const EngineKind& kind : Engines()) names.emplace_back(kind.name);
  return names;
}

const EngineKind* FindEngine(const std::string& name) {
  for (const EngineKind& kind : Engines()) {
    if (name == kind.name) return &kind;
  }
  return nullptr;
}

const EngineKind& EngineNamed(const std::string& name) {
  if (const EngineKind* kind = FindEngine(name)) return *kind;
  const std::vector<std::string> names = EngineNames();
  throw Error(ErrorKind::kUsage,
              fmt::format("unknown engine '{}'{}", name, Suggestion(name, names)),
              "the engines are " + Join(names, ", "));
}

const EngineKind& EngineOfEarlierAnswers() {
  for (const EngineKind& kind : Engines()) {
    if (kind.generations_key != nullptr) return kind;
  }
  throw std::logic_error("no engine answers from earlier generations");
}

}  // namespace evald
