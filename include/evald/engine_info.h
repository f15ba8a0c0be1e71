#pragma once

#include <string>
#include <vector>

#include "evald/json.h"
#include "evald/request.h"

namespace evald {

/// An engine's properties and abilities. They go into `hello` and into run.json.
struct EngineInfo {
  std::string name;                ///< as in eval.yaml
  std::string version;             ///< evald's, or the one that the external server reports
  std::vector<RequestKind> kinds;  ///< an engine that cannot score prompts leaves them out
  int max_length = 0;              ///< context length in tokens; 0 before Load and if unknown
  bool deterministic = false;      ///< results do not depend on batch, order or number of workers
  bool wants_tokens = false;       ///< uses Request::context_tokens; false: takes the text
  bool emulated = false;           ///< the answers are made up, not computed by a model
  int concurrency = 1;             ///< requests that the engine must hold at once to be fully busy
  std::string device;     ///< kind of the device; costs are compared among devices of one kind
  std::string device_id;  ///< the device itself, "cuda:GPU-8f6d…"; "" if unknown
  std::string driver;     ///< versions of the device's driver; "" if unknown
  bool fast = false;      ///< speed was chosen over determinism
  /// What came of the parity check (docs/engines.md): "agrees", "skipped: ..."; "" if none is made
  std::string parity;
  /// The model that a server's replies name, "" if they name none or there is no server
  std::string model;
  bool follows = false;  ///< the engine can pull a checkpoint during its staging (Engine::Follow)
};

/// {"name", "version", "kinds": ["generate_until", ...], "max_length", "deterministic",
///  "wants_tokens", "emulated", "concurrency", "device", "follows"}. The keys "device_id" and
/// "driver", "parity" and "model" follow if they are not empty, and "fast" if it is true.
Json ToJson(const EngineInfo& info);
/// Throws Error(kInput) "<where>: ..." for an absent key, a wrong type or an unknown kind.
EngineInfo EngineInfoFromJson(const Json& json, const std::string& where);

}  // namespace evald
