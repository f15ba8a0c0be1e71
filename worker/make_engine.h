#pragma once

#include <memory>
#include <string>
#include <vector>

#include "worker/engine/engine.h"

namespace evald {

/// Makes an engine. If the engine or a setting is unknown, throws Error(kUsage), which names it and
/// the nearest known one.
std::unique_ptr<Engine> MakeEngine(const EngineOptions& options);

/// The names that EngineKind::maker may have.
std::vector<std::string> EngineMakers();

}  // namespace evald
