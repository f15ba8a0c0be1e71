#include "python/str.h"

#include <algorithm>

#include "base/find_text.h"
#include "python/unicode.h"

namespace evald::python {
namespace {

bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// The first and the last code point of text that is not empty, as bytes.
std::string_view First(std::string_view text) {
  size_t length = 1;
  while (length < text.size() && Continues(text[length])) ++length;
  return text.substr(0, length);
}
std::string_view Last(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && Continues(text[begin])) --begin;
  return text.substr(begin);
}

bool IsSpaceAt(std::string_view code_point) {
  if (code_point.size() == 1) return IsSpace(static_cast<unsigned char>(code_point[0]));
  return IsSpace(Decode(code_point)[0]);
}
bool IsNoSpaceAt(std::string_view code_point) { return !IsSpaceAt(code_point); }

template <typename Cuts>
std::string_view CutLeft(std::string_view text, const Cuts& cuts) {
  while (!text.empty()) {
    const std::string_view first = First(text);
    if (!cuts(first)) break;
    text.remove_prefix(first.size());
  }
  return text;
}
template <typename Cuts>
std::string_view CutRight(std::string_view text, const Cuts& cuts) {
  while (!text.empty()) {
    const std::string_view last = Last(text);
    if (!cuts(last)) break;
    text.remove_suffix(last.size());
  }
  return text;
}

// Bytes before the first white space, and behind the last.
size_t WordAtStart(std::string_view text) {
  return text.size() - CutLeft(text, IsNoSpaceAt).size();
}
size_t WordAtEnd(std::string_view text) { return text.size() - CutRight(text, IsNoSpaceAt).size(); }

bool IsLineEnd(char32_t c) {
  return (c >= 10 && c <= 13) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

}  // namespace

std::string_view StripLeft(std::string_view text) { return CutLeft(text, IsSpaceAt); }
std::string_view StripRight(std::string_view text) { return CutRight(text, IsSpaceAt); }
std::string_view Strip(std::string_view text) { return StripLeft(StripRight(text)); }

std::string_view StripCharacters(std::string_view text, std::string_view characters, bool left,
                                 bool right) {
  std::u32string known = Decode(characters);
  std::sort(known.begin(), known.end());
  const auto cuts = [&known](std::string_view code_point) {
    return std::binary_search(known.begin(), known.end(), Decode(code_point)[0]);
  };
  if (left) text = CutLeft(text, cuts);
  if (right) text = CutRight(text, cuts);
  return text;
}

void Split(std::string_view text, int64_t limit, bool from_right, const PartVisitor& visit) {
  int64_t cuts = 0;
  if (!from_right) {
    for (text = StripLeft(text); !text.empty(); text = StripLeft(text)) {
      const size_t end = cuts++ == limit ? text.size() : WordAtStart(text);
      visit(text.substr(0, end));
      text.remove_prefix(end);
    }
    return;
  }
  for (text = StripRight(text); !text.empty(); text = StripRight(text)) {
    const size_t begin = cuts++ == limit ? 0 : text.size() - WordAtEnd(text);
    visit(text.substr(begin));
    text = text.substr(0, begin);
  }
}

void Split(std::string_view text, std::string_view separator, int64_t limit, bool from_right,
           const PartVisitor& visit) {
  if (from_right) {
    SearchFromRight search(text, separator);
    for (int64_t cuts = 0; cuts != limit; ++cuts) {
      const size_t found = search.Next();
      if (found == std::string_view::npos) break;
      visit(text.substr(found + separator.size()));
      text = text.substr(0, found);
    }
  } else {
    for (int64_t cuts = 0; cuts != limit; ++cuts) {
      const size_t found = FindText(text, separator);
      if (found == std::string_view::npos) break;
      visit(text.substr(0, found));
      text.remove_prefix(found + separator.size());
    }
  }
  visit(text);
}

void SplitLines(std::string_view text, bool keep_ends, const PartVisitor& visit) {
  const std::u32string all = Decode(text);
  for (size_t at = 0; at < all.size();) {
    size_t end = at;
    while (end < all.size() && !IsLineEnd(all[end])) ++end;
    size_t next = std::min(end + 1, all.size());
    if (end + 1 < all.size() && all[end] == '\r' && all[end + 1] == '\n') ++next;
    visit(Encode(std::u32string_view(all).substr(at, (keep_ends ? next : end) - at)));
    at = next;
  }
}

std::string Replace(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (;;) {
    const size_t found = text.find(from);
    if (found == std::string_view::npos) return out += text;
    out += text.substr(0, found);
    out += to;
    text.remove_prefix(found + from.size());
  }
}

bool IsDigits(std::string_view text) {
  const std::u32string all = Decode(text);
  return !all.empty() && std::all_of(all.begin(), all.end(), IsDigit);
}

bool StartsWithSpace(std::string_view text) { return !text.empty() && IsSpaceAt(First(text)); }
bool EndsWithSpace(std::string_view text) { return !text.empty() && IsSpaceAt(Last(text)); }

}  // namespace evald::python
