#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace evald::tok {

/// The code point at byte `*at` of valid UTF-8. Moves `*at` past it.
char32_t NextCodePoint(std::string_view text, size_t* at);
/// The byte at which the code point that ends before byte `at` (> 0) begins.
size_t PreviousStart(std::string_view text, size_t at);
void AppendUtf8(std::string* out, char32_t code);

// The classes below are those of tokenizers 0.23 for every code point: utf8proc's (Unicode 15),
// corrected by unicode_later.h.

/// Rust's char::is_whitespace: the property White_Space.
bool IsWhitespace(char32_t code);
/// The characters that Python's str.rstrip() removes: White_Space and U+001C to U+001F.
bool IsPythonWhitespace(char32_t code);
/// Rust's char::is_numeric: the categories Nd, Nl and No.
bool IsNumeric(char32_t code);
/// ASCII punctuation or one of the categories P*.
bool IsPunctuation(char32_t code);
/// One of the categories M*, as of Unicode 9 (see unicode_age.h).
bool IsMark(char32_t code);
/// The characters of \w in Rust's regex crate (UTS 18, annex C): Alphabetic, M, Nd, Pc,
/// Join_Control.
bool IsWord(char32_t code);

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
/// `text` (valid UTF-8) in a normal form of UAX 15, as of Unicode 9 (see unicode_age.h). Throws
/// Error(kInfrastructure) if memory is short.
std::string Normalize(std::string_view text, NormalForm form);
/// Rust's char::to_lowercase for each code point. No rule looks at the neighbours of a code point.
std::string Lowercase(std::string_view text);

}  // namespace evald::tok
