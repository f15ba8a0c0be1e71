#pragma once

#include <string>
#include <vector>

#include "evald/json.h"
#include "evald/request.h"

namespace evald {

/// What an engine is and can do. Goes into `hello` and into run.json.
struct EngineInfo {
  std::string name;                ///< native, openai, replay or emulated
  std::string version;             ///< of evald, or what the external server says of itself
  std::vector<RequestKind> kinds;  ///< an engine that cannot score prompts leaves them out
  int max_length = 0;              ///< context length in tokens; 0 before Load or when unknown
  bool deterministic = false;      ///< results do not depend on batch, order or number of workers
  bool wants_tokens = false;       ///< uses Request::context_tokens; false: takes the text
  bool emulated = false;           ///< the answers are not a model's
  int concurrency = 1;             ///< requests it wants to hold at once to be fully busy
  std::string device;              ///< kind of what it computes on: costs are compared within one
  std::string device_id;           ///< which one, "cuda:GPU-8f6d…"; "" where there is no telling
  std::string driver;              ///< versions of what drives it; "" likewise
  bool fast = false;               ///< was told to give determinism up for speed
  bool follows = false;            ///< can pull a checkpoint while it is staged (Engine::Follow)
};

/// {"name", "version", "kinds": ["generate_until", ...], "max_length", "deterministic",
///  "wants_tokens", "emulated", "concurrency", "device", "follows"}, and where they say something
/// "device_id", "driver" and "fast".
Json ToJson(const EngineInfo& info);
/// Throws Error(kInput) "<where>: ..." for an absent key, a wrong type or an unknown kind.
EngineInfo EngineInfoFromJson(const Json& json, const std::string& where);

}  // namespace evald
