// LiveCodeBench's private tests.
#include <fmt/format.h>
#include <zlib.h>

#include <cstdint>
#include <cstring>

#include "base/text.h"
#include "evald/error.h"
#include "metrics/scoring/test_cases.h"

namespace evald {
namespace {

constexpr uint64_t kUnpackedBytesMax = uint64_t{256} << 20;

[[noreturn]] void RefusePacked(const std::string& where, const std::string& what) {
  throw Error(
      ErrorKind::kInput,
      fmt::format("{}: {}, expected tests in JSON, or JSON pickled as a text, packed by zlib "
                  "and written in base64",
                  where, what));
}

int Base64Value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

std::string FromBase64(std::string_view text, const std::string& where) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=' || c == '\n' || c == '\r') continue;
    const int value = Base64Value(c);
    if (value < 0)
      RefusePacked(where,
                   fmt::format("the text has the byte 0x{:02x}", static_cast<unsigned char>(c)));
    bits = bits << 6 | static_cast<uint32_t>(value);
    if ((count = (count + 6) % 8) == 6) continue;  // six bits are no byte yet
    bytes.push_back(static_cast<char>(bits >> count & 0xff));
  }
  return bytes;
}

std::string Inflated(const std::string& packed, const std::string& where) {
  z_stream stream = {};
  if (inflateInit(&stream) != Z_OK) RefusePacked(where, "zlib cannot start");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string text;
  char piece[64 << 10];
  int state = Z_OK;
  while (state == Z_OK && text.size() <= kUnpackedBytesMax) {
    stream.next_out = reinterpret_cast<Bytef*>(piece);
    stream.avail_out = sizeof(piece);
    state = inflate(&stream, Z_NO_FLUSH);
    text.append(piece, sizeof(piece) - stream.avail_out);
  }
  inflateEnd(&stream);
  if (text.size() > kUnpackedBytesMax)
    RefusePacked(where, "the unpacked text has more than " + HumanBytes(kUnpackedBytesMax));
  if (state != Z_STREAM_END) RefusePacked(where, "the packed bytes are broken");
  return text;
}

/// A pickle that holds one text and nothing else (CPython's Lib/pickletools.py has the opcodes). No
/// other pickle is read: what it says would have to be run.
class Pickle {
 public:
  Pickle(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  std::string Text() {
    std::string text;
    for (;;) {
      switch (static_cast<unsigned char>(Take(1)[0])) {
        case 0x80:  // PROTO
        case 'q':   // BINPUT
          Take(1);
          break;
        case 0x95:  // FRAME
          Take(8);
          break;
        case 'r':  // LONG_BINPUT
          Take(4);
          break;
        case 0x94:  // MEMOIZE
          break;
        case 0x8c:  // SHORT_BINUNICODE
          text = Take(Number(1));
          break;
        case 'X':  // BINUNICODE
          text = Take(Number(4));
          break;
        case 0x8d:  // BINUNICODE8
          text = Take(Number(8));
          break;
        case '.':  // STOP
          return text;
        default:
          RefusePacked(where_, "the pickle holds something else than a text");
      }
    }
  }

 private:
  std::string_view Take(uint64_t count) {
    if (count > bytes_.size()) RefusePacked(where_, "the pickle is cut off");
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }

  // Little-endian, unsigned.
  uint64_t Number(int bytes) {
    uint64_t number = 0;
    const std::string_view taken = Take(static_cast<uint64_t>(bytes));
    for (int i = bytes; i-- > 0;)
      number = number << 8 | static_cast<unsigned char>(taken[static_cast<size_t>(i)]);
    return number;
  }

  std::string_view bytes_;
  const std::string& where_;
};

}  // namespace

std::string UnpackCases(std::string_view packed, const std::string& where) {
  return Pickle(Inflated(FromBase64(packed, where), where), where).Text();
}

}  // namespace evald
