// The engine that answers from earlier generations: worker/replay/.
#include "engines/engine_kind.h"

namespace evald {
namespace {

constexpr const char* kGenerations = "generations";

std::optional<SettingProblem> FindMissingGenerations(const Json& settings) {
  if (!IsAbsent(settings, kGenerations)) return std::nullopt;
  return SettingProblem{
      kGenerations, "found nothing, expected a run's folder, its `generations` folder or a file",
      "name the folder of the run whose answers are to be scored again"};
}

}  // namespace

EngineKind ReplayKind() {
  EngineKind kind;
  kind.name = kind.maker = "replay";
  kind.generations_key = kGenerations;
  kind.settings = {{kGenerations, SettingUse::kReadPath, SettingForm::kText}};
  kind.find_missing = FindMissingGenerations;
  return kind;
}

}  // namespace evald
