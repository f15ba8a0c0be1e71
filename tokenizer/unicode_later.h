#pragma once

namespace evald::tok {

// Where tokenizers 0.23 and utf8proc 2.8 (Unicode 15) follow different versions of Unicode:
// letters, digits and lower cases there are those of version 16 or 17, punctuation those of
// version 8.

/// A digit or number to Rust's char::is_numeric that utf8proc does not know.
bool IsLaterNumeric(char32_t code);
/// Of \w in Rust's regex crate, unknown to utf8proc.
bool IsLaterWord(char32_t code);
/// Punctuation in Unicode 8, but not to utf8proc.
bool IsEarlierPunctuation(char32_t code);
/// Punctuation to utf8proc, but not yet in Unicode 8.
bool IsLaterPunctuation(char32_t code);
/// The lower case of an upper-case letter that utf8proc does not know; 0 for any other.
char32_t LaterLowercase(char32_t code);

}  // namespace evald::tok
