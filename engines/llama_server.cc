// llama.cpp's llama-server, started on a GGUF file of the checkpoint: worker/server/ with
// dialects/llama_server.cc.
#include "engines/engine_kind.h"
#include "engines/server_settings.h"

namespace evald {
namespace {

std::optional<SettingProblem> FindMissingModel(const Json& settings) {
  if (!IsAbsent(settings, "model")) return std::nullopt;
  return SettingProblem{"model", "found nothing, expected the checkpoint as a GGUF file",
                        "convert it with convert_hf_to_gguf.py of llama.cpp's repository"};
}

}  // namespace

EngineKind LlamaServerKind() {
  EngineKind kind = StartedServerKind("llama-server");
  kind.settings.insert(kind.settings.begin(), {"model", SettingUse::kReadPath, SettingForm::kText});
  kind.find_missing = FindMissingModel;
  return kind;
}

}  // namespace evald
