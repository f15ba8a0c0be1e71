#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Text as Python's str sees it: code points, white space and case (Unicode through utf8proc).
namespace evald::python {

/// The code points of valid UTF-8.
std::u32string Decode(std::string_view text);
std::string Encode(std::u32string_view text);
void AppendUtf8(char32_t c, std::string* out);

bool IsSpace(char32_t c);      ///< str.isspace()
bool IsDigit(char32_t c);      ///< str.isdigit()
bool IsAlpha(char32_t c);      ///< str.isalpha()
bool IsDecimal(char32_t c);    ///< str.isdecimal()
bool IsPrintable(char32_t c);  ///< str.isprintable()
bool IsUpper(char32_t c);
bool IsLower(char32_t c);
bool IsTitle(char32_t c);
bool IsWord(char32_t c);  ///< \w of Python's re

std::string Upper(std::string_view text);
std::string Lower(std::string_view text);
std::string Capitalize(std::string_view text);
std::string Title(std::string_view text);     ///< str.title()
std::string SwapCase(std::string_view text);  ///< str.swapcase()

}  // namespace evald::python
