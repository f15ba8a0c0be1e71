#include "base/names.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "base/text.h"

namespace evald {
namespace {

constexpr size_t kNameBytesMax = 200;
constexpr size_t kLabelBytesMax = 255;
constexpr size_t kFolderBytesMax = 200;
constexpr size_t kFolderBytesKept = 160;  // kept of a name that is too long for a folder
constexpr size_t kHashDigits = 32;

bool IsLetterOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool MayBeginName(char c) { return IsLetterOrDigit(c) || c == '_'; }

bool MayStandInName(char c) {
  return MayBeginName(c) || std::string_view("-.+:=@,() ").find(c) != std::string_view::npos;
}

bool StaysInFolder(char c) { return MayBeginName(c) || c == '-' || c == '.'; }

}  // namespace

std::string WrongWithName(std::string_view name) {
  constexpr const char* kExpected = "expected letters, digits, spaces and _-.+:=@,()";
  if (name.empty()) return "it is empty";
  if (name.size() > kNameBytesMax)
    return fmt::format("it has {} bytes, expected at most {}", name.size(), kNameBytesMax);
  for (size_t i = 0; i < name.size(); ++i) {
    if (MayStandInName(name[i])) continue;
    size_t end = i + 1;  // the end of the whole character
    while (end < name.size() && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) ++end;
    return fmt::format("it holds '{}', {}", PrintableLine(name.substr(i, end - i)), kExpected);
  }
  if (!MayBeginName(name.front()))
    return fmt::format("it begins with '{}', expected a letter, a digit or '_'", name.front());
  return name.back() == ' ' ? "it ends with a space" : "";
}

std::string WrongWithLabel(std::string_view label) {
  if (label.empty()) return "it is empty";
  if (label.size() > kLabelBytesMax)
    return fmt::format("it has {} bytes, expected at most {}", label.size(), kLabelBytesMax);
  if (!IsUtf8(label)) return "it is not text in UTF-8";
  return PrintableLine(label) == label
             ? ""
             : "it holds control characters or line breaks: " + PrintableLine(label);
}

std::string FolderNameOf(std::string_view name) {
  std::string folder;
  size_t kept = 0;  // the end of the last whole character before the cut
  for (const char c : name) {
    const bool hidden = folder.empty() && c == '.';
    if (StaysInFolder(c) && !hidden) {
      folder += c;
    } else {
      folder += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    if (folder.size() <= kFolderBytesKept) kept = folder.size();
  }
  if (folder.empty()) return "%";
  if (folder.size() <= kFolderBytesMax) return folder;
  // "%-" begins no encoded byte, so no short name contains it.
  return folder.substr(0, kept) + "%-" + Sha256Hex(name).substr(0, kHashDigits);
}

std::string Slug(std::string_view name) {
  std::string slug;
  for (const char c : name) {
    const bool plain = IsLetterOrDigit(c) || c == '-' || c == '.' || c == '_';
    slug += plain ? c : '_';
  }
  if (slug.empty() || slug[0] == '.') slug = "run" + slug;
  return slug.substr(0, 80);
}

}  // namespace evald
