// evald's own engine: worker/native/.
#include "engines/engine_kind.h"

namespace evald {

EngineKind NativeKind() {
  using Use = SettingUse;
  using Form = SettingForm;
  using namespace setting_limits;
  constexpr double kChunkMax = 1'048'576;
  constexpr double kCopyThreadsMax = 1024;
  EngineKind kind;
  kind.name = kind.maker = "native";
  kind.needs_checkpoint = true;
  kind.takes_weights = true;
  kind.reads_checkpoint = true;
  kind.gpus = GpuUse::kWorker;
  kind.prompts = PromptForm::kTokens;
  kind.keeps_prefixes = true;
  kind.settings = {
      {"max_length", Use::kValue, Form::kInteger, 1, kLengthMax},
      {"kv_cache", Use::kValue, Form::kBytes},
      {"concurrency", Use::kValue, Form::kInteger, 1, kConcurrencyMax},
      {"chunk", Use::kValue, Form::kInteger, 1, kChunkMax},
      {"kernels",
       Use::kValue,
       Form::kWord,
       0,
       0,
       {"auto", "avx512", "avx2", "portable", "avx512_bf16", "rounded_bf16", "rounded_fp16"}},
      {"fast", Use::kValue, Form::kSwitch},
      {"graphs", Use::kValue, Form::kSwitch},
      {"ahead", Use::kValue, Form::kSwitch},
      {"copy_threads", Use::kValue, Form::kInteger, 1, kCopyThreadsMax},
      {"parity_seconds", Use::kValue, Form::kNumber, 0, kParitySecondsMax},
      GenerationConfigSetting(),
  };
  return kind;
}

}  // namespace evald
