#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace evald::tok {

/// The splitting patterns of GPT-2, GPT-4, Llama 3, OLMo 2 and Qwen 2, matched by hand-written
/// code. Each pattern matches every character, so the matches cover a text without a gap. The
/// matches are exactly those of Oniguruma for the expression, and found many times faster. Any
/// thread may call it.
class WordPattern {
 public:
  /// The pattern of this expression, if it is one of those.
  static std::optional<WordPattern> Recognize(std::string_view expression);

  /// The end of the match at byte `at` (< text.size()) of valid UTF-8.
  size_t End(std::string_view text, size_t at) const {
    return gpt2_ ? EndGpt2(text, at) : EndGpt4(text, at);
  }

 private:
  WordPattern(bool gpt2, size_t digits_max);

  size_t EndGpt2(std::string_view text, size_t at) const;
  size_t EndGpt4(std::string_view text, size_t at) const;

  bool gpt2_;
  size_t digits_max_;
  const uint8_t* classes_;
};

}  // namespace evald::tok
