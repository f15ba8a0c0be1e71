#include "metrics/sandbox/shown_output.h"

#include "base/text.h"

namespace evald::sandbox {
namespace {

bool BeginsCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

// Without the part of a character at the end, up to which the text was cut.
std::string_view WithoutCutEnd(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (!BeginsCharacter(text[text.size() - back])) continue;
    const size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    if (length > back) text.remove_suffix(back);
    break;
  }
  return text;
}

// The same at the beginning.
std::string_view WithoutCutBegin(std::string_view text) {
  for (int i = 0; i < 3 && !text.empty() && !BeginsCharacter(text[0]); ++i) text.remove_prefix(1);
  return text;
}

std::string Safe(std::string_view text) { return Printable(ReplaceInvalidUtf8(text)); }

}  // namespace

std::string ShownOutput(std::string_view output) {
  if (output.size() <= kOutputBytes) return Safe(output);
  const std::string kept = std::string(output.substr(0, kOutputBytes / 2)) +
                           std::string(output.substr(output.size() - kOutputBytes / 2));
  return ShownOutput(kept, output.size());
}

std::string ShownOutput(std::string_view kept, uint64_t bytes) {
  if (bytes <= kept.size()) return Safe(kept);
  const std::string_view head = WithoutCutEnd(kept.substr(0, kept.size() / 2));
  const std::string_view tail = WithoutCutBegin(kept.substr(kept.size() / 2));
  return Safe(head) + "\n… " + std::to_string(bytes - head.size() - tail.size()) +
         " bytes more …\n" + Safe(tail);
}

}  // namespace evald::sandbox
