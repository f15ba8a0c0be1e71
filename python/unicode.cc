#include "python/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/text.h"

namespace evald::python {
namespace {

struct Range {
  char32_t first, last;
};

template <size_t N>
bool In(const Range (&ranges)[N], char32_t c) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [c](const Range& r) { return c >= r.first && c <= r.last; });
}

// Numeric_Type=Digit without the decimal digits (Unicode 14, DerivedNumericType.txt).
constexpr Range kDigits[] = {
    {0xb2, 0xb3},       {0xb9, 0xb9},       {0x1369, 0x1371},   {0x19da, 0x19da},
    {0x2070, 0x2070},   {0x2074, 0x2079},   {0x2080, 0x2089},   {0x2460, 0x2468},
    {0x2474, 0x247c},   {0x2488, 0x2490},   {0x24ea, 0x24ea},   {0x24f5, 0x24fd},
    {0x24ff, 0x24ff},   {0x2776, 0x277e},   {0x2780, 0x2788},   {0x278a, 0x2792},
    {0x10a40, 0x10a43}, {0x10e60, 0x10e68}, {0x11052, 0x1105a}, {0x1f100, 0x1f10a}};
// Other_Uppercase and Other_Lowercase (Unicode 14, PropList.txt).
constexpr Range kOtherUpper[] = {
    {0x2160, 0x216f}, {0x24b6, 0x24cf}, {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}};
constexpr Range kOtherLower[] = {
    {0xaa, 0xaa},       {0xba, 0xba},       {0x2b0, 0x2b8},     {0x2c0, 0x2c1},    {0x2e0, 0x2e4},
    {0x345, 0x345},     {0x37a, 0x37a},     {0x1d2c, 0x1d6a},   {0x1d78, 0x1d78},  {0x1d9b, 0x1dbf},
    {0x2071, 0x2071},   {0x207f, 0x207f},   {0x2090, 0x209c},   {0x2170, 0x217f},  {0x24d0, 0x24e9},
    {0x2c7c, 0x2c7d},   {0xa69c, 0xa69d},   {0xa770, 0xa770},   {0xa7f8, 0xa7f9},  {0xab5c, 0xab5f},
    {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107b0}, {0x107b2, 0x107ba}};

struct SpecialCase {
  char32_t code;
  std::array<char32_t, 3> upper;
  std::array<char32_t, 3> title;
};
constexpr SpecialCase kSpecialCases[] = {
#include "python/special_case.inc"
};

const SpecialCase* FindSpecial(char32_t c) {
  const auto* found =
      std::lower_bound(std::begin(kSpecialCases), std::end(kSpecialCases), c,
                       [](const SpecialCase& s, char32_t code) { return s.code < code; });
  return found != std::end(kSpecialCases) && found->code == c ? found : nullptr;
}

void AppendSpecial(const std::array<char32_t, 3>& codes, std::u32string* out) {
  for (char32_t c : codes) {
    if (c != 0) out->push_back(c);
  }
}

void AppendUpper(char32_t c, std::u32string* out) {
  if (const SpecialCase* special = c < 0xdf ? nullptr : FindSpecial(c)) {
    AppendSpecial(special->upper, out);
  } else {
    out->push_back(static_cast<char32_t>(utf8proc_toupper(static_cast<int32_t>(c))));
  }
}

void AppendTitle(char32_t c, std::u32string* out) {
  if (const SpecialCase* special = c < 0xdf ? nullptr : FindSpecial(c)) {
    AppendSpecial(special->title, out);
  } else {
    out->push_back(static_cast<char32_t>(utf8proc_totitle(static_cast<int32_t>(c))));
  }
}

utf8proc_category_t Category(char32_t c) { return utf8proc_category(static_cast<int32_t>(c)); }

bool IsCased(char32_t c) { return IsUpper(c) || IsLower(c) || IsTitle(c); }

// Case_Ignorable (Unicode 14, DerivedCoreProperties.txt): marks, formats, modifiers, and the
// punctuation that does not break a word.
bool IsCaseIgnorable(char32_t c) {
  constexpr char32_t kPunctuation[] = {0x27,   0x2e,   0x3a,   0xb7,   0x387,  0x55f,
                                       0x5f4,  0x2018, 0x2019, 0x2024, 0x2027, 0xfe13,
                                       0xfe52, 0xfe55, 0xff07, 0xff0e, 0xff1a};
  const utf8proc_category_t category = Category(c);
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME ||
         category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_LM ||
         category == UTF8PROC_CATEGORY_SK ||
         std::binary_search(std::begin(kPunctuation), std::end(kPunctuation), c);
}

char32_t LowerSigma(std::u32string_view text, size_t at) {
  size_t before = at;
  while (before > 0 && IsCaseIgnorable(text[before - 1])) --before;
  if (before == 0 || !IsCased(text[before - 1])) return 0x3c3;
  size_t after = at + 1;
  while (after < text.size() && IsCaseIgnorable(text[after])) ++after;
  return after < text.size() && IsCased(text[after]) ? 0x3c3 : 0x3c2;
}

void AppendLower(std::u32string_view text, size_t at, std::u32string* out) {
  const char32_t c = text[at];
  if (c == 0x3a3) {
    out->push_back(LowerSigma(text, at));
  } else if (c == 0x130) {
    out->append(U"i\u0307");
  } else {
    out->push_back(static_cast<char32_t>(utf8proc_tolower(static_cast<int32_t>(c))));
  }
}

}  // namespace

std::u32string Decode(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const int length = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    char32_t c = length == 1 ? byte : byte & (0xff >> (length + 1));
    for (int k = 1; k < length && i + k < text.size(); ++k) {
      c = (c << 6) | (static_cast<unsigned char>(text[i + k]) & 0x3f);
    }
    out.push_back(c);
    i += length;
  }
  return out;
}

void AppendUtf8(char32_t c, std::string* out) {
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out->push_back(static_cast<char>(0xc0 | (c >> 6)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3f)));
  } else if (c < 0x10000) {
    out->push_back(static_cast<char>(0xe0 | (c >> 12)));
    out->push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3f)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3f)));
  } else {
    out->push_back(static_cast<char>(0xf0 | (c >> 18)));
    out->push_back(static_cast<char>(0x80 | ((c >> 12) & 0x3f)));
    out->push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3f)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3f)));
  }
}

std::string Encode(std::u32string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char32_t c : text) AppendUtf8(c, &out);
  return out;
}

bool IsSpace(char32_t c) {
  return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

bool IsDecimal(char32_t c) {
  return c < 0x80 ? c >= '0' && c <= '9' : Category(c) == UTF8PROC_CATEGORY_ND;
}

bool IsDigit(char32_t c) { return IsDecimal(c) || (c >= 0x80 && In(kDigits, c)); }

bool IsAlpha(char32_t c) {
  const utf8proc_category_t category = Category(c);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool IsPrintable(char32_t c) {
  if (c == ' ') return true;
  const utf8proc_category_t category = Category(c);
  return category != UTF8PROC_CATEGORY_CN && category < UTF8PROC_CATEGORY_ZS;
}

bool IsUpper(char32_t c) {
  return Category(c) == UTF8PROC_CATEGORY_LU || (c > 0x2000 && In(kOtherUpper, c));
}
bool IsLower(char32_t c) {
  return Category(c) == UTF8PROC_CATEGORY_LL || (c >= 0x80 && In(kOtherLower, c));
}
bool IsTitle(char32_t c) { return Category(c) == UTF8PROC_CATEGORY_LT; }

bool IsWord(char32_t c) {
  const utf8proc_category_t category = Category(c);
  return c == '_' || IsAlpha(c) || category == UTF8PROC_CATEGORY_ND ||
         category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO;
}

std::string Upper(std::string_view text) {
  if (IsAscii(text)) {
    std::string out(text);
    for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    return out;
  }
  std::u32string out;
  for (char32_t c : Decode(text)) AppendUpper(c, &out);
  return Encode(out);
}

std::string Lower(std::string_view text) {
  if (IsAscii(text)) {
    std::string out(text);
    for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    return out;
  }
  const std::u32string in = Decode(text);
  std::u32string out;
  for (size_t i = 0; i < in.size(); ++i) AppendLower(in, i, &out);
  return Encode(out);
}

std::string Capitalize(std::string_view text) {
  const std::u32string in = Decode(text);
  std::u32string out;
  for (size_t i = 0; i < in.size(); ++i) {
    if (i == 0) {
      AppendTitle(in[i], &out);
    } else {
      AppendLower(in, i, &out);
    }
  }
  return Encode(out);
}

std::string Title(std::string_view text) {
  const std::u32string in = Decode(text);
  std::u32string out;
  bool previous_cased = false;
  for (size_t i = 0; i < in.size(); ++i) {
    if (previous_cased) {
      AppendLower(in, i, &out);
    } else {
      AppendTitle(in[i], &out);
    }
    previous_cased = IsCased(in[i]);
  }
  return Encode(out);
}

std::string SwapCase(std::string_view text) {
  const std::u32string in = Decode(text);
  std::u32string out;
  for (size_t i = 0; i < in.size(); ++i) {
    if (IsUpper(in[i])) {
      AppendLower(in, i, &out);
    } else if (IsLower(in[i])) {
      AppendUpper(in[i], &out);
    } else {
      out.push_back(in[i]);
    }
  }
  return Encode(out);
}

}  // namespace evald::python
