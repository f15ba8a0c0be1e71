#pragma once

#include <cstdint>
#include <string>

#include "base/read_roots.h"
#include "evald/json.h"
#include "tokenizer/tokenizer_class.h"

namespace evald::tok {

/// The most bytes that a tokenizer.json may have.
inline constexpr uint64_t kTokenizerBytesMax = 256 << 20;

/// The files beside a tokenizer.json, read as transformers 5.23 reads them
/// (PreTrainedTokenizerBase._from_pretrained).
struct TokenizerConfig {
  /// The files that decide the class.
  ClassFiles class_files;
  /// The arguments of the class: tokenizer_config.json without tokenizer_class, add_bos_token and
  /// add_eos_token (the post-processor of tokenizer.json decides those).
  /// `additional_special_tokens` has its newer name `extra_special_tokens`. If there is no
  /// added_tokens_decoder, the members of special_tokens_map.json replace those of
  /// tokenizer_config.json.
  Json settings = Json::object();
  /// Tokens with names that are no attributes ("image_token"), by name: those that
  /// tokenizer_config.json gives as texts, and those of an extra_special_tokens that gives names.
  /// They are not in `settings`.
  Json own_names = Json::object();
  /// added_tokens.json, an object of ids by content. Empty if added_tokens_decoder is given.
  Json added_tokens = Json::object();
  /// The place of tokenizer_config.json, for errors.
  std::string where;
};

/// SPECIAL_TOKENS_ATTRIBUTES of transformers' tokenization_utils_base.py, in its order.
inline constexpr const char* kTokenAttributes[] = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};
bool IsTokenAttribute(const std::string& key);

/// The object in a JSON file of at most 64 MiB beside a tokenizer.json. An empty object if there is
/// no such file. Throws Error(kInput) for a broken file.
Json ReadObject(const ReadFolder& directory, const char* name);

/// Reads the files. An absent file counts as empty. Throws Error(kInput) for a broken file and for
/// settings that are not served (split_special_tokens, fast_tokenizer_files, spaces cleaned up in
/// decoded text).
TokenizerConfig ReadTokenizerConfig(const ReadFolder& directory);

}  // namespace evald::tok
