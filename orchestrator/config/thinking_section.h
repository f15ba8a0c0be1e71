#pragma once

#include "evald/request.h"
#include "orchestrator/config/eval_config.h"
#include "orchestrator/config/yaml_section.h"

namespace evald {

inline constexpr const char* kEnableThinking = "enable_thinking";
inline constexpr const char* kThinkEndToken = "think_end_token";

/// The key `think_end_token` of a mapping; none if it is absent. Throws Error(kUsage).
ThinkEnd ReadThinkEnd(YamlSection& section);

/// The key `chat_template_args`: variables for the chat template. Throws Error(kUsage) for a name
/// that the template has otherwise.
Json ReadTemplateArguments(YamlSection& top, bool chat_template);

/// Gives each task the engine's keys that it lacks. A task that only switches thinking off has no
/// end of thinking. Tasks, engine and prompts must have been read. Throws Error(kUsage) for
/// thinking without an end, or without a chat template that could switch it.
void SettleThinking(EvalConfig* config);

}  // namespace evald
