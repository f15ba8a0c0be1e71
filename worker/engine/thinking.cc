#include "worker/engine/thinking.h"

#include <fmt/format.h>

#include <algorithm>

#include "evald/error.h"
#include "python/str.h"

namespace evald {
namespace {

// Without white space in front of the answer, which becomes part of the thinking if that has ended.
void StripAnswer(SplitText* split) {
  const size_t space = split->answer.size() - python::StripLeft(split->answer).size();
  if (split->ended) split->thinking += split->answer.substr(0, space);
  split->answer.erase(0, space);
}

bool Cut(const std::string& stop, std::string* text) {
  const size_t at = stop.empty() ? std::string::npos : text->find(stop);
  if (at == std::string::npos) return false;
  text->resize(at);
  return true;
}

}  // namespace

ThinkingEnd::ThinkingEnd(const ThinkEnd& end, const Tokenizer* tokenizer)
    : tokenizer_(tokenizer), token_(end.token), text_(end.text) {
  if (token_ >= 0 && tokenizer == nullptr) {
    throw Error(ErrorKind::kInput,
                fmt::format("think_end_token is the id {}, but evald has no tokenizer that knows "
                            "its text",
                            token_),
                "name the text of the token instead, such as \"</think>\"");
  }
  if (tokenizer == nullptr) return;
  if (token_ >= 0) {
    const std::string wrong = WrongWithTokenId(*tokenizer, token_);
    if (!wrong.empty()) {
      throw Error(ErrorKind::kInput, "think_end_token: " + wrong,
                  "name an id of this tokenizer, or the text of the token");
    }
    text_ = tokenizer->Decode({token_}, false);
    special_ = tokenizer->Decode({token_}, true).empty();
    return;
  }
  const int32_t id = tokenizer->TokenId(text_);
  special_ = id >= 0 && tokenizer->Decode({id}, true).empty();
  if (special_) token_ = id;
}

SplitText ThinkingEnd::OfTokens(const std::vector<int32_t>& generated) const {
  if (token_ < 0) return OfText(tokenizer_->Decode(generated, true));
  const auto last = std::find(generated.rbegin(), generated.rend(), token_);
  SplitText split;
  split.ended = last != generated.rend();
  if (split.ended) split.thinking = tokenizer_->Decode({generated.begin(), last.base()}, false);
  const auto answer = split.ended ? last.base() : generated.begin();
  split.answer = tokenizer_->Decode({answer, generated.end()}, true);
  StripAnswer(&split);
  return split;
}

// Python's split() looks for ends from left to right, so ends do not overlap.
SplitText ThinkingEnd::OfText(const std::string& text) const {
  size_t behind = 0;
  SplitText split;
  if (text_.empty()) return {"", std::string(python::StripLeft(text)), false};
  for (size_t at = text.find(text_); at != std::string::npos; at = text.find(text_, behind)) {
    split.ended = true;
    behind = at + text_.size();
  }
  split.thinking = text.substr(0, behind);
  split.answer = text.substr(behind);
  StripAnswer(&split);
  return split;
}

void SetAnswer(SplitText split, const std::vector<std::string>& until, const std::string& eos,
               FinishReason reason, Generation* generation) {
  bool stopped = false;
  for (const std::string& stop : until) stopped = Cut(stop, &split.answer) || stopped;
  Cut(eos, &split.answer);
  const bool unfinished = reason == FinishReason::kLength && !split.ended;
  generation->finish = stopped && !unfinished ? FinishReason::kStop : reason;
  generation->thinking = std::move(split.thinking);
  generation->text = std::move(split.answer);
}

}  // namespace evald
