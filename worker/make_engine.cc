#include "worker/make_engine.h"

#include <fmt/format.h>

#include <string_view>

#include "engines/engines.h"
#include "evald/error.h"
#include "worker/emulated/emulated_engine.h"
#include "worker/native_devices.h"
#include "worker/replay/replay_engine.h"
#include "worker/server/server_engine.h"

namespace evald {
namespace {

struct Maker {
  std::string_view name;  // EngineKind::maker
  std::unique_ptr<Engine> (*make)(const EngineOptions& options);
};

constexpr Maker kMakers[] = {
    {"native", MakeNativeEngineFor},
    {"server", MakeServerEngine},
    {"replay", MakeReplayEngine},
    {"emulated", MakeEmulatedEngine},
};

}  // namespace

std::vector<std::string> EngineMakers() {
  std::vector<std::string> names;
  for (const Maker& maker : kMakers) names.emplace_back(maker.name);
  return names;
}

std::unique_ptr<Engine> MakeEngine(const EngineOptions& options) {
  const EngineKind& kind = EngineNamed(options.name);
  for (const Maker& maker : kMakers) {
    if (maker.name == kind.maker) return maker.make(options);
  }
  throw Error(ErrorKind::kInfrastructure,
              fmt::format("engine '{}': this worker has no code named '{}'", kind.name, kind.maker),
              "see whether evald and its workers are of one build");
}

}  // namespace evald
