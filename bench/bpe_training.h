#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace evald::bench {

/// Tokenizers as well-known families have them.
enum class TokenizerKind { kGpt2, kLlama3, kQwen2, kLlama2 };

/// "gpt2-like" and the like.
const char* NameOf(TokenizerKind kind);

/// The text of a tokenizer.json of that kind with about `merges` merges, trained on `lines` as
/// byte-pair encodings are: the pair of neighbours that occurs most often becomes a token, again
/// and again (Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units",
/// 2016).
std::string TrainTokenizer(TokenizerKind kind, const std::vector<std::string>& lines,
                           size_t merges);

}  // namespace evald::bench
