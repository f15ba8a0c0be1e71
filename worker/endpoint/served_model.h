#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chat/chat_template.h"
#include "evald/engine_info.h"
#include "tokenizer/tokenizer.h"

namespace evald::endpoint {

/// The model behind an endpoint: what reading a call and writing its answer need to know of it.
/// Immutable; any thread.
struct ServedModel {
  std::string name;                  ///< the name that answers give it
  std::vector<std::string> aliases;  ///< further names by which calls may ask for it
  std::unique_ptr<Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat;
  std::string no_chat;  ///< why there is no chat template
  int max_length = 0;   ///< of the context, in tokens
  /// Generation settings of the checkpoint say top_k. Otherwise a call that says none has none.
  bool has_top_k = false;
  bool reports_tokens = false;  ///< Engine::reports_tokens
  bool deterministic = false;   ///< EngineInfo::deterministic
  int64_t created = 0;          ///< seconds since 1970

  /// Whether a call for the model of this name is for this one.
  bool Answers(const std::string& asked) const;
};

/// Reads the parts of the checkpoint. `name` "" takes the folder's. Throws Error(kInput).
ServedModel ReadServedModel(const std::filesystem::path& checkpoint, const std::string& name,
                            const EngineInfo& engine);

}  // namespace evald::endpoint
