#pragma once

#include <string>
#include <vector>

namespace evald {

/// The mappings of eval.yaml and their keys, the same as in docs/eval.schema.json: "" is the top,
/// "tasks[]" an entry of `tasks`. The settings of engines are in engines/.
struct EvalKeys {
  const char* section;
  std::vector<const char*> keys;
};
const std::vector<EvalKeys>& AllEvalKeys();

/// A KeyHint (orchestrator/config/yaml_section.h) for eval.yaml. For a key in the wrong mapping,
/// says where it belongs. For a name from lm-evaluation-harness's options, such as `model`, gives
/// evald's name for it. "" for any other key.
std::string HintOfEvalKey(const std::string& section, const std::string& key);

}  // namespace evald
