// SGLang, started on the staged checkpoint: worker/server/ with dialects/sglang.cc.
#include "engines/engine_kind.h"
#include "engines/server_settings.h"

namespace evald {

EngineKind SglangKind() {
  using Use = SettingUse;
  using Form = SettingForm;
  EngineKind kind = StartedServerKind("sglang");
  const std::vector<EngineSetting> own = {
      {"dtype", Use::kValue, Form::kWord, 0, 0, {"auto", "bfloat16", "float16", "float32"}},
      {"memory_share", Use::kValue, Form::kNumber, 0.01, 1},
      {"deterministic", Use::kValue, Form::kSwitch},
      {"swap", Use::kValue, Form::kSwitch},
  };
  kind.settings.insert(kind.settings.end(), own.begin(), own.end());
  return kind;
}

}  // namespace evald
