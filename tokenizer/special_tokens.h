#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/read_roots.h"
#include "evald/json.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/tokenizer_class.h"
#include "tokenizer/tokenizer_config.h"

namespace evald::tok {

/// A token to be added, and the id that a file gives it.
struct DeclaredToken {
  AddedToken token;
  std::optional<int64_t> id;
};

/// Whether BOS and EOS stand around a text. Replaces the rule of the post-processor.
struct AddedEnds {
  bool bos = false;
  bool eos = false;
};

/// The tokens that a tokenizer's class makes of those that the files name, as
/// TokenizersBackend.__init__ of transformers 5.23 does.
struct SpecialTokens {
  /// "bos_token" and the like with their contents, in transformers' order: bos, eos, unk, sep, pad,
  /// cls, mask, then tokens with names of their own.
  std::vector<std::pair<std::string, std::string>> named;
  /// The tokens to add. Each list is one batch (see AddedTokens::Add).
  std::vector<std::vector<DeclaredToken>> batches;
  std::optional<AddedEnds> ends;

  /// The content of a named token; null for none.
  const std::string* Named(const std::string& name) const;
};

/// `file` is the document of tokenizer.json. Throws Error(kInput) for a token that is neither a
/// text nor an object with "content".
SpecialTokens ReadSpecialTokens(const TokenizerConfig& config, const ClassRules& rules,
                                const Json& file, const std::string& where);

/// The contents of the named tokens of a checkpoint's folder, by name in transformers' order, as
/// chat templates see them (special_tokens_map). If the class is not served, it has no defaults
/// here.
Json NamedTokenContents(const ReadFolder& directory);

/// The added_tokens of a tokenizer.json.
std::vector<DeclaredToken> ReadAddedTokens(const Json& file, const std::string& where);

/// The tokens in a canonical spelling, a part of the tokenizer's content key.
std::string Spell(const SpecialTokens& tokens);

}  // namespace evald::tok
