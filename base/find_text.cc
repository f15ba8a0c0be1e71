#include "base/find_text.h"

#include <string.h>

namespace evald {
namespace {

constexpr size_t kNone = std::string_view::npos;
constexpr size_t kShort = 32;  // up to here rfind takes about linear time, too

std::string Reversed(std::string_view text) { return {text.rbegin(), text.rend()}; }

}  // namespace

// memmem is glibc's: the two-way algorithm for needles of over 256 bytes.
size_t FindText(std::string_view text, std::string_view needle, size_t from) {
  if (from > text.size()) return kNone;
  if (needle.empty()) return from;
  const void* found = memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
  if (found == nullptr) return kNone;
  return static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

size_t FindLastText(std::string_view text, std::string_view needle) {
  return needle.empty() ? text.size() : SearchFromRight(text, needle).Next();
}

SearchFromRight::SearchFromRight(std::string_view text, std::string_view needle)
    : text_(text), needle_(needle) {
  if (needle.size() <= kShort) return;
  backward_ = Reversed(text);
  backward_needle_ = Reversed(needle);
}

size_t SearchFromRight::Next() {
  size_t found = kNone;
  if (backward_needle_.empty()) {
    found = text_.rfind(needle_);
  } else {
    const size_t at = FindText(backward_, backward_needle_, backward_.size() - text_.size());
    if (at != kNone) found = backward_.size() - at - needle_.size();
  }
  text_ = text_.substr(0, found == kNone ? 0 : found);
  return found;
}

}  // namespace evald
