#pragma once

namespace evald::tok {

// Differences between tokenizers 0.23 and utf8proc 2.8 (Unicode 15), which follow different
// versions of Unicode. Letters, digits and lower cases of tokenizers are those of version 16 or 17,
// punctuation is that of version 8.

/// A digit or number in Rust's char::is_numeric that utf8proc does not know.
bool IsLaterNumeric(char32_t code);
/// A character of \w in Rust's regex crate that utf8proc does not know.
bool IsLaterWord(char32_t code);
/// Punctuation in Unicode 8, but not in utf8proc.
bool IsEarlierPunctuation(char32_t code);
/// Punctuation in utf8proc, but not yet in Unicode 8.
bool IsLaterPunctuation(char32_t code);
/// The lower case of an upper-case letter that utf8proc does not know; 0 for any other character.
char32_t LaterLowercase(char32_t code);

}  // namespace evald::tok
