// The engine that makes answers up: worker/emulated/. Paths that only tests need come from the
// worker's environment (docs/engines.md, "emulated").
#include "engines/engine_kind.h"

namespace evald {

EngineKind EmulatedKind() {
  using Use = SettingUse;
  using Form = SettingForm;
  using namespace setting_limits;
  constexpr double kTokensPerSecondMax = 1e12;
  EngineKind kind;
  kind.name = kind.maker = "emulated";
  kind.takes_weights = true;
  kind.makes_answers_up = true;
  kind.settings = {
      {"delay_ms", Use::kValue, Form::kNumber, 0, 1e3 * kHourSeconds},
      {"prefill_tokens_per_second", Use::kValue, Form::kNumber, 0, kTokensPerSecondMax},
      {"tokens_per_second", Use::kValue, Form::kNumber, 0, kTokensPerSecondMax},
      {"jitter", Use::kValue, Form::kNumber, 0, 1},
      {"load_seconds", Use::kValue, Form::kNumber, 0, kHourSeconds},
      {"clock_scale", Use::kValue, Form::kNumber, 0, 1000},
      {"fail_rate", Use::kValue, Form::kNumber, 0, 1},
      {"concurrency", Use::kValue, Form::kInteger, 1, kConcurrencyMax},
      {"max_length", Use::kValue, Form::kInteger, 1, kLengthMax},
      {"tokens_out", Use::kValue, Form::kRange, 0, 1e6},
      {"text", Use::kValue, Form::kText},
      {"slow", Use::kValue, Form::kFactors, 0, 1e6},
  };
  return kind;
}

}  // namespace evald
