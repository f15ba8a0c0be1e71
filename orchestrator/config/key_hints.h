#pragma once

#include <string>
#include <vector>

namespace evald {

/// The mappings of eval.yaml and their keys, as docs/eval.schema.json has them: "" is the top,
/// "tasks[]" an entry of `tasks`. The settings of engines stand in protocol/engine_settings.h.
struct EvalKeys {
  const char* section;
  std::vector<const char*> keys;
};
const std::vector<EvalKeys>& AllEvalKeys();

/// A KeyHint (orchestrator/config/yaml_section.h) for eval.yaml: where a key belongs that stands in
/// the wrong mapping, and what evald calls the thing that lm-evaluation-harness's options call
/// `model`, say. "" for anything else.
std::string HintOfEvalKey(const std::string& section, const std::string& key);

}  // namespace evald
