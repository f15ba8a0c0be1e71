#pragma once

#include <string>
#include <string_view>

namespace evald::tok {

/// The GPT-2 alphabet: every byte is represented by a printable character. Bytes 0x21-0x7E,
/// 0xA1-0xAC and 0xAE-0xFF represent themselves (as Latin-1). The other bytes are U+0100 onwards,
/// in the order of the bytes. Source: bytes_to_unicode in GPT-2's encoder.py.

/// `bytes` spelled in that alphabet.
std::string ToByteAlphabet(std::string_view bytes);

/// The form of the words that a model gets.
enum class Spelling {
  kText,   ///< as text
  kBytes,  ///< as bytes, which the vocabulary spells in the GPT-2 alphabet
};

/// The byte that `code` represents, or -1.
int FromByteAlphabet(char32_t code);

/// GPT-2's rule for splitting text into words, as ByteLevel applies it with `use_regex`.
inline constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace evald::tok
