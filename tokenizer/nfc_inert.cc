#include "tokenizer/nfc_inert.h"

#include <utf8proc.h>

#include <array>
#include <cstdint>
#include <vector>

#include "tokenizer/unicode.h"
#include "tokenizer/unicode_age.h"

namespace evald::tok {
namespace {

constexpr char32_t kCodePoints = 0x110000;

bool IsSyllable(char32_t code) { return code >= 0xAC00 && code <= 0xD7A3; }
// Vowels and final consonants of Hangul. They compose with the character before them.
bool IsLaterJamo(char32_t code) {
  return (code >= 0x1161 && code <= 0x1175) || (code >= 0x11A8 && code <= 0x11C2);
}

const utf8proc_property_t& PropertyOf(char32_t code) {
  return *utf8proc_get_property(static_cast<utf8proc_int32_t>(code));
}

// A starter that never composes with the character before it.
bool StandsAlone(char32_t code) {
  const utf8proc_property_t& property = PropertyOf(code);
  const bool second = property.comb_index != UINT16_MAX && property.comb_index >= 0x8000;
  return property.combining_class == 0 && !second && !IsLaterJamo(code);
}

bool IsInert(char32_t code) {
  if (UnknownToNormalForms(code) || IsSyllable(code)) return true;
  if (!StandsAlone(code)) return false;
  if (PropertyOf(code).decomp_seqindex == UINT16_MAX) return true;
  std::array<utf8proc_int32_t, 32> parts{};
  const auto size = static_cast<utf8proc_ssize_t>(parts.size());
  const utf8proc_ssize_t count = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(code), parts.data(), size, UTF8PROC_DECOMPOSE, nullptr);
  if (count < 1 || count > size || !StandsAlone(static_cast<char32_t>(parts[0]))) return false;
  const utf8proc_ssize_t composed = utf8proc_normalize_utf32(
      parts.data(), count, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  return composed == 1 && static_cast<char32_t>(parts[0]) == code;
}

std::vector<bool> MakeTable() {
  std::vector<bool> table(kCodePoints);
  for (char32_t code = 0; code < kCodePoints; ++code) {
    table[code] = (code < 0xD800 || code >= 0xE000) && IsInert(code);
  }
  return table;
}

}  // namespace

bool IsSurelyNfc(std::string_view text) {
  constexpr char32_t kFirstThatIsNot = 0x300;
  for (size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const char32_t code = NextCodePoint(text, &at);
    if (code < kFirstThatIsNot) continue;
    static const std::vector<bool> table = MakeTable();
    if (!table[code]) return false;
  }
  return true;
}

}  // namespace evald::tok
