#include <cstddef>
#include <cstdint>
#include <string>

#include "evald/error.h"
#include "orchestrator/config/eval_config.h"
#include "orchestrator/config/yaml_section.h"

// Any text as an eval.yaml, its first line also as --set: a configuration, or an Error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace evald;
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    ToJson(ParseEvalConfig(text, "/nowhere/eval.yaml", {}));
  } catch (const Error&) {
  }
  const std::string assignment = text.substr(0, text.find('\n'));
  try {
    ToJson(ParseEvalConfig("tasks: [gsm8k]\nengine: {name: emulated}\nworkers: {count: 2}\n",
                           "/nowhere/eval.yaml", {{assignment}, ""}));
  } catch (const Error&) {
  }
  return 0;
}
