#include "worker/endpoint/token_text.h"

#include <algorithm>
#include <string_view>

#include "evald/error.h"

namespace evald::endpoint {
namespace {

// A token's text may depend on the tokens before it: a character of up to four, or a decoder that
// strips the space at the beginning.
constexpr size_t kWindow = 8;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

void StripReplacements(std::string* text) {
  while (text->ends_with(kReplacement)) text->resize(text->size() - kReplacement.size());
}

// The length of the longest end of `text` with which `stop` begins, if all of `stop` would be more.
size_t Overlap(std::string_view text, std::string_view stop) {
  for (size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length) {
    if (text.ends_with(stop.substr(0, length))) return length;
  }
  return 0;
}

}  // namespace

std::optional<std::string> TokenTexts::TextOf(int32_t token) const {
  std::vector<int32_t> tokens = window_;
  tokens.push_back(token);
  const std::string whole = tokenizer_.Decode(tokens, !special_);
  if (!whole.starts_with(head_) || whole.ends_with(kReplacement)) return std::nullopt;
  return whole.substr(head_.size());
}

std::string TokenTexts::Append(int32_t token) {
  const std::string added = TextOf(token).value_or("");
  window_.push_back(token);
  if (window_.size() > kWindow) window_.erase(window_.begin());
  head_ = tokenizer_.Decode(window_, !special_);
  StripReplacements(&head_);
  return added;
}

TextStream::TextStream(const Tokenizer& tokenizer, std::vector<std::string> until)
    : texts_(tokenizer, false), stops_(std::move(until)) {
  if (tokenizer.eos_id() >= 0) stops_.push_back(tokenizer.Decode({tokenizer.eos_id()}, false));
  std::erase(stops_, "");
}

std::string TextStream::Add(int32_t token) {
  held_ += texts_.Append(token);
  size_t sure = held_.size(), stop_at = std::string::npos;
  for (const std::string& stop : stops_) {
    stop_at = std::min(stop_at, held_.find(stop));
    sure = std::min(sure, held_.size() - Overlap(held_, stop));
  }
  if (stopped_) return "";
  stopped_ = stop_at != std::string::npos;
  std::string piece = held_.substr(0, std::min(sure, stop_at));
  held_.erase(0, piece.size());
  sent_ += piece;
  return piece;
}

std::string TextStream::Finish(const std::string& whole) {
  if (!whole.starts_with(sent_))
    throw Error(ErrorKind::kInternal, "the text of an answer is not that of its tokens");
  return whole.substr(sent_.size());
}

}  // namespace evald::endpoint
