#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "evald/json.h"
#include "tokenizer/tokenizer.h"
#include "worker/server/completions.h"

namespace evald::server {

/// Sends one body to the completions endpoint and gives the parsed reply; throws Error.
using Ask = std::function<Completion(const Json& body)>;

/// A token that the server names as a likely next one.
struct NextToken {
  int32_t id = 0;
  std::string text;
  double logprob = 0;
  bool likeliest = false;
  bool clear = false;  ///< far from the likeliest of the others: rounding cannot change the order
};

/// The likely next tokens behind `tokens`, which `prompt` encodes to, likeliest first; those whose
/// text is exactly one token there. Throws Error(kInfrastructure) if the server names none.
std::vector<NextToken> LikeliestAfter(const CompletionsStyle& style, const Tokenizer& tokenizer,
                                      const std::string& prompt, const std::vector<int32_t>& tokens,
                                      const Ask& ask);

/// The prompts with which a server is tested.
const std::vector<std::string>& TestPrompts();

}  // namespace evald::server
