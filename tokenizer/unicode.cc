#include "tokenizer/unicode.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <cstdlib>
#include <memory>

#include "base/text.h"
#include "evald/error.h"
#include "tokenizer/nfc_inert.h"
#include "tokenizer/unicode_age.h"
#include "tokenizer/unicode_later.h"

namespace evald::tok {
namespace {

utf8proc_category_t Category(char32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

int Options(NormalForm form) {
  switch (form) {
    case NormalForm::kNfc:
      return UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    case NormalForm::kNfd:
      return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
    case NormalForm::kNfkc:
      return UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT;
    case NormalForm::kNfkd:
      return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
  }
  return 0;
}

// Symbols (So) that have the property Other_Alphabetic: circled and squared letters.
bool IsLetterSymbol(char32_t code) {
  return (code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) ||
         (code >= 0x1F150 && code <= 0x1F169) || (code >= 0x1F170 && code <= 0x1F189);
}

std::string NormalizePart(std::string_view text, NormalForm form) {
  if (IsAscii(text)) return std::string(text);
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                   static_cast<utf8proc_option_t>(Options(form)));
  if (length < 0) {
    throw Error(ErrorKind::kInfrastructure, fmt::format("Unicode normal form of {} bytes: {}",
                                                        text.size(), utf8proc_errmsg(length)));
  }
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner(mapped, std::free);
  return {reinterpret_cast<const char*>(mapped), static_cast<size_t>(length)};
}

}  // namespace

char32_t NextCodePoint(std::string_view text, size_t* at) {
  const auto byte = [&](size_t i) -> char32_t {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const size_t i = *at;
  const char32_t lead = byte(i);
  if (lead < 0x80) {
    *at = i + 1;
    return lead;
  }
  if (lead < 0xE0) {
    *at = i + 2;
    return (lead & 0x1F) << 6 | (byte(i + 1) & 0x3F);
  }
  if (lead < 0xF0) {
    *at = i + 3;
    return (lead & 0x0F) << 12 | (byte(i + 1) & 0x3F) << 6 | (byte(i + 2) & 0x3F);
  }
  *at = i + 4;
  return (lead & 0x07) << 18 | (byte(i + 1) & 0x3F) << 12 | (byte(i + 2) & 0x3F) << 6 |
         (byte(i + 3) & 0x3F);
}

size_t PreviousStart(std::string_view text, size_t at) {
  --at;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

void AppendUtf8(std::string* out, char32_t code) {
  const auto put = [&](char32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

bool IsWhitespace(char32_t code) {
  return (code >= 0x09 && code <= 0x0D) || code == 0x20 || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

bool IsPythonWhitespace(char32_t code) {
  return IsWhitespace(code) || (code >= 0x1C && code <= 0x1F);
}

bool IsNumeric(char32_t code) {
  const utf8proc_category_t category = Category(code);
  return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
         category == UTF8PROC_CATEGORY_NO || IsLaterNumeric(code);
}

bool IsPunctuation(char32_t code) {
  if (code < 0x80) {
    return (code >= 0x21 && code <= 0x2F) || (code >= 0x3A && code <= 0x40) ||
           (code >= 0x5B && code <= 0x60) || (code >= 0x7B && code <= 0x7E);
  }
  const utf8proc_category_t category = Category(code);
  const bool now = category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
  return now ? !IsLaterPunctuation(code) : IsEarlierPunctuation(code);
}

bool IsMark(char32_t code) {
  if (UnknownToNormalForms(code)) return false;
  if (code == 0x1CF2 || code == 0x1CF3) return true;  // letters since Unicode 12
  const utf8proc_category_t category = Category(code);
  return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

bool IsWord(char32_t code) {
  const utf8proc_category_t category = Category(code);
  const bool letter_or_mark = category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_ME;
  return letter_or_mark || category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
         category == UTF8PROC_CATEGORY_PC || IsLetterSymbol(code) || code == 0x200C ||
         code == 0x200D || IsLaterWord(code);
}

std::string Normalize(std::string_view text, NormalForm form) {
  if (form == NormalForm::kNfc && IsSurelyNfc(text)) return std::string(text);
  std::string out;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    if (!UnknownToNormalForms(NextCodePoint(text, &at))) continue;
    out += NormalizePart(text.substr(done, begin - done), form);
    out += text.substr(begin, at - begin);
    done = at;
  }
  return out + NormalizePart(text.substr(done), form);
}

std::string Lowercase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const char32_t code = NextCodePoint(text, &at);
    if (code == 0x130) {  // the one code point whose lower case is two: i and a dot above
      out += "i\xCC\x87";
    } else if (const char32_t later = LaterLowercase(code); later != 0) {
      AppendUtf8(&out, later);
    } else {
      AppendUtf8(&out,
                 static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
    }
  }
  return out;
}

}  // namespace evald::tok
