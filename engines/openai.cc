// The engine that asks a server with an OpenAI-compatible completions API: worker/server/.
#include <fmt/format.h>

#include "engines/engine_kind.h"

namespace evald {
namespace {

std::optional<SettingProblem> FindMissingServer(const Json& settings) {
  if (IsAbsent(settings, "command") != IsAbsent(settings, "base_url")) return std::nullopt;
  const bool neither = IsAbsent(settings, "command");
  return SettingProblem{
      neither ? "command" : "base_url",
      fmt::format(
          "found {}, expected either `command`, to start a server, or `base_url`, where one runs",
          neither ? "nothing" : FoundInstead(settings["base_url"])),
      neither ? "give one of the two" : "leave one of the two out"};
}

}  // namespace

EngineKind OpenaiKind() {
  using Use = SettingUse;
  using Form = SettingForm;
  using namespace setting_limits;
  EngineKind kind;
  kind.name = "openai";
  kind.maker = "server";
  kind.takes_weights = true;
  kind.server = ServerUse::kStartedOrGiven;
  kind.prompts = PromptForm::kAsSet;
  kind.settings = {
      {"command", Use::kCommand, Form::kTexts},
      {"base_url", Use::kUrl, Form::kText},
      {"environment", Use::kCommand, Form::kVariables},
      {"model", Use::kValue, Form::kText},
      {"prompt", Use::kValue, Form::kWord, 0, 0, {"text", "tokens"}},
      {"concurrency", Use::kValue, Form::kInteger, 1, kConcurrencyMax},
      {"max_length", Use::kValue, Form::kInteger, 0, kLengthMax},
      {"stops_max", Use::kValue, Form::kInteger, 0, kTriesMax},
      {"send_seed", Use::kValue, Form::kSwitch},
      {"scoring", Use::kValue, Form::kSwitch},
      {"deterministic", Use::kValue, Form::kSwitch},
      {"extra_body", Use::kValue, Form::kMembers},
      {"health_path", Use::kUrlPath, Form::kText},
      {"api_key_env", Use::kVariable, Form::kText},
      {"ready_seconds", Use::kValue, Form::kNumber, 0.001, kDaySeconds},
      {"request_seconds", Use::kValue, Form::kNumber, 0.001, kDaySeconds},
      {"connect_seconds", Use::kValue, Form::kNumber, 0.001, kHourSeconds},
      {"parity_seconds", Use::kValue, Form::kNumber, 0, kParitySecondsMax},
      {"retries", Use::kValue, Form::kInteger, 0, kTriesMax},
      {"restarts", Use::kValue, Form::kInteger, 0, kTriesMax},
      GenerationConfigSetting(),
  };
  kind.find_missing = FindMissingServer;
  return kind;
}

}  // namespace evald
