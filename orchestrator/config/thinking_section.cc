#include "orchestrator/config/thinking_section.h"

#include <fmt/format.h>

#include <algorithm>

#include "chat/chat_template.h"
#include "engines/engine_setting.h"
#include "evald/error.h"

namespace evald {
namespace {

// The place of a task's key, or of the engine's.
std::string PlaceOf(const TaskRequest& task, const EngineConfig& engine, bool of_task,
                    const char* key) {
  if (of_task) return fmt::format("{}: task '{}': key '{}'", task.where, task.name, key);
  return fmt::format("{}: key 'engine.{}'", engine.where.at(key), key);
}

}  // namespace

ThinkEnd ReadThinkEnd(YamlSection& section) {
  const Json value = section.Value(kThinkEndToken);
  if (value.is_null()) return {};
  const std::optional<ThinkEnd> end = ParseThinkEnd(value);
  if (end) return *end;
  section.Refuse(kThinkEndToken,
                 fmt::format("found {}, expected {}", FoundInstead(value), kThinkEndForm));
}

Json ReadTemplateArguments(YamlSection& top, bool chat_template) {
  constexpr const char* kKey = "chat_template_args";
  const Json arguments = top.Value(kKey);
  if (arguments.is_null()) return Json::object();
  if (!arguments.is_object()) {
    top.Refuse(kKey, fmt::format("found {}, expected a mapping such as {{reasoning_effort: low}}",
                                 FoundInstead(arguments)));
  }
  if (!chat_template)
    top.Refuse(kKey, "are variables of a chat template, but 'chat_template' is not set");
  if (arguments.contains(kEnableThinking)) {
    top.Refuse(kKey, fmt::format("has '{0}'; give it as 'engine.{0}', or as '{0}' of a task, so "
                                 "that evald knows of the thinking",
                                 kEnableThinking));
  }
  for (const std::string& name : ChatTemplate::ReservedArguments()) {
    if (!arguments.contains(name)) continue;
    top.Refuse(kKey, fmt::format("has '{}', which transformers gives a template itself", name));
  }
  return arguments;
}

void SettleThinking(EvalConfig* config) {
  const EngineConfig& engine = config->engine;
  for (TaskRequest& task : config->tasks) {
    if (task.command) continue;  // the program decides what it asks, and how
    const bool own_switch = task.enable_thinking.has_value();
    const bool off = own_switch && !*task.enable_thinking;
    if (!own_switch) task.enable_thinking = engine.enable_thinking;
    if (!task.think_end.given() && !off) task.think_end = engine.think_end;
    if (!task.enable_thinking) continue;
    const std::string place = PlaceOf(task, engine, own_switch, kEnableThinking);
    if (!config->prompts.chat_template) {
      throw Error(ErrorKind::kUsage,
                  place + ": is for the chat template, but 'chat_template' is not set",
                  "set chat_template: true, or leave the key out and name the think_end_token "
                  "alone");
    }
    if (*task.enable_thinking && !task.think_end.given()) {
      throw Error(ErrorKind::kUsage,
                  place +
                      ": is true, but 'think_end_token' is absent: the thinking would be scored "
                      "as part of the answer",
                  fmt::format("name what ends the thinking: {}", kThinkEndForm));
    }
  }
}

}  // namespace evald
