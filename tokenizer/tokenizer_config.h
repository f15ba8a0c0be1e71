#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "evald/json.h"
#include "tokenizer/added_tokens.h"

namespace evald::tok {

/// What the files beside a tokenizer.json say, read as transformers 5 reads them: named special
/// tokens from tokenizer_config.json (a string or {"content": ...}); when that has no
/// added_tokens_decoder, special_tokens_map.json comes on top of it. add_bos_token and
/// add_eos_token say nothing where there is a tokenizer.json: its post-processor decides.
struct TokenizerConfig {
  std::optional<std::string> bos;
  std::optional<std::string> eos;
  /// Tokens under the ids they must have, in order of id.
  std::vector<std::pair<int64_t, AddedToken>> added;
  /// Every named special token, then the additional ones; they become special added tokens.
  std::vector<AddedToken> special;
};

/// Files that are absent say nothing. Throws Error(kInput) for a broken one and for
/// split_special_tokens, which is not served.
TokenizerConfig ReadTokenizerConfig(const std::filesystem::path& directory);

/// The same, canonically spelled: part of the tokenizer's content key.
std::string Spell(const TokenizerConfig& config);

}  // namespace evald::tok
