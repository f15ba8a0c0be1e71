#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "evald/generation.h"
#include "worker/endpoint/call.h"
#include "worker/endpoint/token_text.h"
#include "worker/engine/token_watch.h"

/// The answers of the API as JSON (platform.openai.com/docs/api-reference). Pure functions and
/// plain values.
namespace evald::endpoint {

/// What the answers to one call have in common.
struct ReplyHead {
  std::string id;
  int64_t created = 0;  ///< seconds since 1970
  std::string model;
};

/// "stop" or "length".
const char* FinishReasonOf(const Generation& generation);

/// Collects the `logprobs` of one choice, token by token. For completions they are the four lists
/// of the legacy API (`tokens`, `token_logprobs`, `top_logprobs`, `text_offset`), for chats a list
/// of objects. A token that ends amid a character is named "token_id:17".
class LogprobsWriter {
 public:
  /// `call` and `tokenizer` must outlive this. `before`: the tokens before the first one written.
  LogprobsWriter(const Call& call, const Tokenizer& tokenizer, const std::vector<int32_t>& before);

  /// The first token of an echoed prompt: no log-probability is known of it.
  void AddFirst(int32_t token);
  void Add(const TokenReport& report);

  bool empty() const { return count_ == 0; }
  /// What was added since the last call.
  Json Take();

 private:
  std::string NameOf(int32_t token) const;
  void AddToLists(int32_t token, const TokenReport* report);
  Json Entry(const TokenLogProbability& likely) const;

  const Call& call_;
  TokenTexts texts_;
  size_t offset_ = 0;  ///< characters before the next token
  size_t count_ = 0;
  Json tokens_, token_logprobs_, top_logprobs_, text_offset_, content_;
};

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
};
Json ToJson(const Usage& usage);

/// One choice of a whole answer; `logprobs` may be null.
Json WholeChoice(bool chat, size_t index, const std::string& text, Json logprobs,
                 const char* finish_reason);
Json WholeReply(bool chat, const ReplyHead& head, Json choices, const Usage& usage);

/// A chunk of a stream with a piece of one choice; `finish_reason` null while the choice goes on.
Json Chunk(bool chat, const ReplyHead& head, size_t index, const std::string& text, Json logprobs,
           const char* finish_reason);
/// The first chunk of a chat's choice: it names the role.
Json RoleChunk(const ReplyHead& head, size_t index);
/// The last chunk if the call wants the usage.
Json UsageChunk(bool chat, const ReplyHead& head, const Usage& usage);

/// The frame of an event stream, "data: ...\n\n".
std::string Frame(const Json& chunk);
inline constexpr const char* kDoneFrame = "data: [DONE]\n\n";

}  // namespace evald::endpoint
