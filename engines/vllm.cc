// vLLM, started on the staged checkpoint: worker/server/ with dialects/vllm.cc.
#include "engines/engine_kind.h"
#include "engines/server_settings.h"

namespace evald {

EngineKind VllmKind() {
  using Use = SettingUse;
  using Form = SettingForm;
  EngineKind kind = StartedServerKind("vllm");
  const std::vector<EngineSetting> own = {
      {"dtype", Use::kValue, Form::kWord, 0, 0, {"auto", "bfloat16", "float16", "float32"}},
      {"memory_share", Use::kValue, Form::kNumber, 0.01, 1},
      {"kv_cache", Use::kValue, Form::kBytes},
      {"deterministic", Use::kValue, Form::kSwitch},
      {"swap", Use::kValue, Form::kSwitch},
  };
  kind.settings.insert(kind.settings.end(), own.begin(), own.end());
  return kind;
}

}  // namespace evald
