#include "tokenizer/expression.h"

#include <string_view>

namespace evald::tok {
namespace {

// Every code point that one of the two versions of Oniguruma takes and the other does not.
constexpr std::string_view kNewLetters =
    R"(\x{1C89}-\x{1C8A}\x{A7CB}-\x{A7CD}\x{A7DA}-\x{A7DC}\x{105C0}-\x{105F3})"
    R"(\x{10D4A}-\x{10D65}\x{10D6F}-\x{10D85}\x{10EC2}-\x{10EC4}\x{1123F}-\x{11240})"
    R"(\x{11380}-\x{11389}\x{1138B}\x{1138E}\x{11390}-\x{113B5}\x{113B7}\x{113D1}\x{113D3})"
    R"(\x{11BC0}-\x{11BE0}\x{11F02}\x{11F04}-\x{11F10}\x{11F12}-\x{11F33}\x{1342F})"
    R"(\x{13441}-\x{13446}\x{13460}-\x{143FA}\x{16100}-\x{1611D}\x{16D40}-\x{16D6C})"
    R"(\x{18CFF}\x{1B132}\x{1B155}\x{1DF25}-\x{1DF2A}\x{1E030}-\x{1E06D}\x{1E4D0}-\x{1E4EB})"
    R"(\x{1E5D0}-\x{1E5ED}\x{1E5F0}\x{2B739}\x{2EBF0}-\x{2EE5D}\x{31350}-\x{323AF})";
constexpr std::string_view kNewNumbers =
    R"(\x{10D40}-\x{10D49}\x{116D0}-\x{116E3}\x{11BF0}-\x{11BF9}\x{11F50}-\x{11F59})"
    R"(\x{16130}-\x{16139}\x{16D70}-\x{16D79}\x{1CCF0}-\x{1CCF9}\x{1D2C0}-\x{1D2D3})"
    R"(\x{1E4F0}-\x{1E4F9}\x{1E5F1}-\x{1E5FA})";

// The form of a property that also takes the code points of `more`; a class nests in a class.
std::string Widened(std::string_view property, std::string_view more) {
  std::string inner(property);
  inner[1] = 'p';
  return (property[1] == 'P' ? "[^" : "[") + inner + std::string(more) + "]";
}

}  // namespace

std::string WidenProperties(const std::string& expression) {
  constexpr size_t kPropertyBytes = 5;  // of \p{L}
  std::string out;
  for (size_t at = 0; at < expression.size();) {
    const std::string_view property = std::string_view(expression).substr(at, kPropertyBytes);
    if (property == "\\p{L}" || property == "\\P{L}") {
      out += Widened(property, kNewLetters);
      at += kPropertyBytes;
    } else if (property == "\\p{N}" || property == "\\P{N}") {
      out += Widened(property, kNewNumbers);
      at += kPropertyBytes;
    } else {
      const size_t taken = expression[at] == '\\' ? 2 : 1;  // an escaped backslash begins nothing
      out += expression.substr(at, taken);
      at += taken;
    }
  }
  return out;
}

}  // namespace evald::tok
