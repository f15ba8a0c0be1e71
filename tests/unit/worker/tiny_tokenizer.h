#pragma once

#include <filesystem>

#include "evald/json.h"

namespace evald::test {

/// A byte-level tokenizer without merges: token i is byte i. Written as tokenizer.json into
/// `folder`, with a config.json that gives a context of `max_length` tokens.
void WriteTinyCheckpoint(const std::filesystem::path& folder, int max_length);

/// How a toy server may get log-probabilities wrong.
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
/// Understands prompt (text or tokens), max_tokens, echo and logprobs; generates greedily.
Json ToyCompletion(const Json& body, Fault fault);
/// log P(token | context) of that model.
double ToyLogprob(const std::vector<int>& context, int token);

}  // namespace evald::test
