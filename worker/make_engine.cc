#include <fmt/format.h>

#include "base/text.h"
#include "evald/error.h"
#include "worker/emulated/emulated_engine.h"
#include "worker/engine.h"
#include "worker/native_devices.h"
#include "worker/openai/openai_engine.h"
#include "worker/replay/replay_engine.h"

namespace evald {
namespace {

struct Maker {
  const char* name;
  std::unique_ptr<Engine> (*make)(const EngineOptions& options);
};

constexpr Maker kMakers[] = {
    {"native", MakeNativeEngineFor},
    {"openai", MakeOpenaiEngine},
    {"replay", MakeReplayEngine},
    {"emulated", MakeEmulatedEngine},
};

}  // namespace

std::unique_ptr<Engine> MakeEngine(const EngineOptions& options) {
  std::vector<std::string> names;
  for (const Maker& maker : kMakers) {
    if (options.name == maker.name) return maker.make(options);
    names.push_back(maker.name);
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("unknown engine '{}'{}", options.name, Suggestion(options.name, names)),
              "the engines are " + Join(names, ", "));
}

}  // namespace evald
