#include "support.h"

#include "worker/native/native_engine.h"

namespace evald::endpoint::test {

std::filesystem::path Checkpoint() {
  return std::filesystem::path(EVALD_SOURCE_DIR) / "examples/quickstart/checkpoints/step-01200";
}

std::unique_ptr<Engine> LoadedEngine() {
  EngineOptions options;
  options.name = "native";
  options.device = "cpu:0";
  options.settings = {{"kv_cache", "64MiB"}};
  std::unique_ptr<Engine> engine = MakeNativeEngine(options);
  engine->Load(Checkpoint());
  return engine;
}

ServedModel Model() {
  EngineInfo info;
  info.max_length = 2048;
  info.deterministic = true;
  ServedModel model = ReadServedModel(Checkpoint(), "", info);
  model.reports_tokens = true;
  model.chat.emplace(
      "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
      "{% if add_generation_prompt %}assistant:{% endif %}",
      Json::object(), std::nullopt, "a test");
  return model;
}

}  // namespace evald::endpoint::test
