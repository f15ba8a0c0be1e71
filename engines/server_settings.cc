#include "engines/server_settings.h"

namespace evald {

std::vector<EngineSetting> ServerSettings() {
  using Use = SettingUse;
  using Form = SettingForm;
  using namespace setting_limits;
  return {
      {"command", Use::kCommand, Form::kTexts},
      {"arguments", Use::kCommand, Form::kTexts},
      {"environment", Use::kCommand, Form::kVariables},
      {"max_length", Use::kValue, Form::kInteger, 1, kLengthMax},
      {"concurrency", Use::kValue, Form::kInteger, 1, kConcurrencyMax},
      {"extra_body", Use::kValue, Form::kMembers},
      {"ready_seconds", Use::kValue, Form::kNumber, 0.001, kDaySeconds},
      {"request_seconds", Use::kValue, Form::kNumber, 0.001, kDaySeconds},
      {"parity_seconds", Use::kValue, Form::kNumber, 0, kParitySecondsMax},
      {"retries", Use::kValue, Form::kInteger, 0, kTriesMax},
      {"restarts", Use::kValue, Form::kInteger, 0, kTriesMax},
      GenerationConfigSetting(),
  };
}

EngineKind StartedServerKind(const char* name) {
  EngineKind kind;
  kind.name = kind.program = name;
  kind.maker = "server";
  kind.needs_checkpoint = true;
  kind.takes_weights = true;
  kind.gpus = GpuUse::kServer;
  kind.server = ServerUse::kStarted;
  kind.prompts = PromptForm::kTokens;
  kind.keeps_prefixes = true;
  kind.settings = ServerSettings();
  return kind;
}

}  // namespace evald
