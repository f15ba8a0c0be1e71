#pragma once

#include <filesystem>

#include "evald/json.h"

namespace evald::test {

/// Writes a byte-level tokenizer without merges (token i is byte i) as tokenizer.json into
/// `folder`, with a config.json that gives a context of `max_length` tokens.
void WriteTinyCheckpoint(const std::filesystem::path& folder, int max_length);

/// The faults in log-probabilities that a toy server may have.
enum class Fault {
  kNone,
  kNoLogprobs,
  kConstant,
  kShifted,
  kChance,
  kContextFree,
  kGreedyAlways,
  kShort
};

/// The reply of a completions server whose model is a fixed function of the last three bytes.
/// Understands prompt (text or tokens), max_tokens, echo and logprobs. Generates greedily.
Json ToyCompletion(const Json& body, Fault fault);
/// log P(token | context) in that model.
double ToyLogprob(const std::vector<int>& context, int token);

}  // namespace evald::test
