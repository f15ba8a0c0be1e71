#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace evald::bench {

/// Kinds of tokenizers of well-known model families.
enum class TokenizerKind { kGpt2, kLlama3, kQwen2, kLlama2 };

/// The name of a kind, such as "gpt2-like".
const char* NameOf(TokenizerKind kind);

/// Trains a tokenizer on `lines` by byte-pair encoding: the pair of neighbours that occurs most
/// often becomes a token, again and again (Sennrich et al., "Neural Machine Translation of Rare
/// Words with Subword Units", 2016). Returns the text of its tokenizer.json, which has about
/// `merges` merges.
std::string TrainTokenizer(TokenizerKind kind, const std::vector<std::string>& lines,
                           size_t merges);

}  // namespace evald::bench
