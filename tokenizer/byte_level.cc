#include "tokenizer/byte_level.h"

#include <array>

#include "tokenizer/unicode.h"

namespace evald::tok {
namespace {

constexpr char32_t kShiftedCount = 68;  // bytes that do not represent themselves

bool StandsForItself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<std::string, 256> spelled;
  std::array<int, 0x100 + kShiftedCount> byte_of;

  Alphabet() {
    byte_of.fill(-1);
    char32_t shifted = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const char32_t code = StandsForItself(byte) ? byte : shifted++;
      AppendUtf8(&spelled[byte], code);
      byte_of[code] = static_cast<int>(byte);
    }
  }
};

const Alphabet& TheAlphabet() {
  static const Alphabet alphabet;
  return alphabet;
}

}  // namespace

std::string ToByteAlphabet(std::string_view bytes) {
  const Alphabet& alphabet = TheAlphabet();
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char c : bytes) out += alphabet.spelled[static_cast<unsigned char>(c)];
  return out;
}

int FromByteAlphabet(char32_t code) {
  const auto& byte_of = TheAlphabet().byte_of;
  return code < byte_of.size() ? byte_of[code] : -1;
}

}  // namespace evald::tok
