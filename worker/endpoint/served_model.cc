#include "worker/endpoint/served_model.h"

#include <algorithm>

#include "base/clock.h"
#include "base/jsonl.h"
#include "evald/error.h"

namespace evald::endpoint {
namespace {

// As checkpoint/generation_config.h chooses the file.
bool HasTopK(const ReadFolder& folder) {
  for (const char* name : {"generation_config.json", "config.json"}) {
    if (!folder.HasFile(name)) continue;
    const Json json = ParseJson(folder.Read(name), (folder / name).string());
    return json.is_object() && json.contains("top_k") && !json.at("top_k").is_null();
  }
  return false;
}

}  // namespace

bool ServedModel::Answers(const std::string& asked) const {
  return asked == name || std::find(aliases.begin(), aliases.end(), asked) != aliases.end();
}

ServedModel ReadServedModel(const std::filesystem::path& checkpoint, const std::string& name,
                            const EngineInfo& engine) {
  const std::filesystem::path absolute = std::filesystem::absolute(checkpoint).lexically_normal();
  const std::filesystem::path folder_name =
      absolute.has_filename() ? absolute.filename() : absolute.parent_path().filename();
  const ReadFolder folder(checkpoint);
  ServedModel model;
  model.name = name.empty() ? folder_name.string() : name;
  model.aliases = {checkpoint.string(), absolute.string()};
  model.tokenizer = Tokenizer::Load(folder);
  const auto now = static_cast<int64_t>(WallSeconds());
  try {
    model.chat = ChatTemplate::Load(folder, "", ChatDate{now, true});
  } catch (const Error& e) {
    model.no_chat = e.message();
  }
  model.max_length = engine.max_length;
  model.has_top_k = HasTopK(folder);
  model.deterministic = engine.deterministic;
  model.created = now;
  return model;
}

}  // namespace evald::endpoint
