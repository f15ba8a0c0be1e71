#pragma once

#include <string>
#include <vector>

#include "engines/engine_kind.h"

namespace evald {

/// The engine of an eval.yaml that names none.
inline constexpr const char* kDefaultEngine = "native";

/// Every engine, each described in a file of its own (engines/NAME.cc).
const std::vector<EngineKind>& Engines();

std::vector<std::string> EngineNames();

/// The engine of this name; null if there is none.
const EngineKind* FindEngine(const std::string& name);

/// The engine of this name. Throws Error(kUsage) that names the nearest one if there is none.
const EngineKind& EngineNamed(const std::string& name);

/// The engine that answers from the generations of an earlier run.
const EngineKind& EngineOfEarlierAnswers();

/// The most bytes that an engine's settings may take as JSON. An agent names the settings of all
/// its workers, twice each, in one message to a new service (protocol::AgentReady).
inline constexpr size_t kSettingsBytesMax = 12 * 1024;

/// The first fault in an engine's settings (an object; null is none) that shows without looking at
/// files, the environment or the processor. The service, `evald validate`, `evald run` and the
/// worker all call this, so that they agree.
std::optional<SettingProblem> FindSettingProblem(const std::string& engine, const Json& settings);

}  // namespace evald
