#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engines/engine_setting.h"
#include "evald/json.h"

namespace evald {

/// The use that an engine makes of the GPUs that evald hands out.
enum class GpuUse {
  kNone,    ///< none: its workers stand for no device
  kWorker,  ///< a worker on a GPU is the program evald-worker-cuda
  kServer,  ///< the server that its worker starts computes on them; the worker is evald-worker
};

/// The server program that an engine's worker talks to.
enum class ServerUse {
  kNone,
  kStarted,         ///< the worker starts one on the staged checkpoint
  kStartedOrGiven,  ///< likewise, unless a setting of use kUrl names a server that runs already
};

/// The form in which an engine takes prompts.
enum class PromptForm {
  kText,
  kTokens,
  kAsSet,  ///< tokens if the setting `prompt` is "tokens", else text
};

struct SettingProblem {
  std::string key;  ///< "" if the settings as a whole are wrong
  std::string problem;
  std::string remedy;
};

/// The properties of an engine that evald goes by. Nothing else in the orchestrator depends on an
/// engine's name.
struct EngineKind {
  const char* name;  ///< engine.name in eval.yaml
  /// The name by which worker/make_engine.cc makes this engine: the engine's own name or, if the
  /// engine starts a server, that of the server's client
  const char* maker;
  bool needs_checkpoint = false;  ///< eval.yaml must name a checkpoint
  /// Its worker is given the checkpoint's weights, staged in shared memory, unless a server is
  /// given (GivenServer)
  bool takes_weights = false;
  /// evald's own code reads the checkpoint, so that what is wrong with it is found before it is
  /// staged (worker/native/checkpoint_check.h)
  bool reads_checkpoint = false;
  GpuUse gpus = GpuUse::kNone;
  ServerUse server = ServerUse::kNone;
  /// The program of that server that `evald doctor` looks for on PATH; null for none
  const char* program = nullptr;
  PromptForm prompts = PromptForm::kText;
  /// The engine computes a prefix that requests of a trial share once. Another trial computes it
  /// again
  bool keeps_prefixes = false;
  bool makes_answers_up = false;  ///< results say so
  /// The setting that names the generations of an earlier run, from which it answers; null for none
  const char* generations_key = nullptr;
  /// Every key that the engine takes below `engine:`; all others are refused. So each setting has
  /// its effect on evald and its values stated here. No setting names a file to write.
  std::vector<EngineSetting> settings;
  /// Finds a required setting that is missing. Null if the engine requires none. The forms of the
  /// given values have been checked before.
  std::optional<SettingProblem> (*find_missing)(const Json& settings) = nullptr;

  std::vector<std::string> SettingKeys() const;
  bool HasSetting(const std::string& key) const;
};

/// The URL of a server that runs already, if the settings name one; "" otherwise.
std::string GivenServer(const EngineKind& kind, const Json& settings);

/// Whether an engine with these settings gets its prompts as tokens.
bool TakesTokens(const EngineKind& kind, const Json& settings);

}  // namespace evald
