#include "tokenizer/properties.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "evald/error.h"

namespace evald::tok {
namespace {

struct Row {
  const char* name;
  std::vector<CodeRange> more;
};

// clang-format off
const std::vector<Row>& Rows() {
  static const std::vector<Row> rows = {
{"Lu",
 {
  {0x1C89, 0x1C89}, {0xA7CB, 0xA7CC}, {0xA7DA, 0xA7DA}, {0xA7DC, 0xA7DC}, {0x10D50, 0x10D65},
 }},
{"Ll",
 {
  {0x1C8A, 0x1C8A}, {0xA7CD, 0xA7CD}, {0xA7DB, 0xA7DB}, {0x10D70, 0x10D85}, {0x1DF25, 0x1DF2A},
 }},
{"Lm",
 {
  {0x10D4E, 0x10D4E}, {0x10D6F, 0x10D6F}, {0x16D40, 0x16D42}, {0x16D6B, 0x16D6C},
  {0x1E030, 0x1E06D}, {0x1E4EB, 0x1E4EB},
 }},
{"Lo",
 {
  {0x105C0, 0x105F3}, {0x10D4A, 0x10D4D}, {0x10D4F, 0x10D4F}, {0x10EC2, 0x10EC4},
  {0x1123F, 0x11240}, {0x11380, 0x11389}, {0x1138B, 0x1138B}, {0x1138E, 0x1138E},
  {0x11390, 0x113B5}, {0x113B7, 0x113B7}, {0x113D1, 0x113D1}, {0x113D3, 0x113D3},
  {0x11BC0, 0x11BE0}, {0x11F02, 0x11F02}, {0x11F04, 0x11F10}, {0x11F12, 0x11F33},
  {0x1342F, 0x1342F}, {0x13441, 0x13446}, {0x13460, 0x143FA}, {0x16100, 0x1611D},
  {0x16D43, 0x16D6A}, {0x18CFF, 0x18CFF}, {0x1B132, 0x1B132}, {0x1B155, 0x1B155},
  {0x1E4D0, 0x1E4EA}, {0x1E5D0, 0x1E5ED}, {0x1E5F0, 0x1E5F0}, {0x2B739, 0x2B739},
  {0x2EBF0, 0x2EE5D}, {0x31350, 0x323AF},
 }},
{"Mn",
 {
  {0x897, 0x897}, {0xECE, 0xECE}, {0x10D69, 0x10D6D}, {0x10EFC, 0x10EFF}, {0x11241, 0x11241},
  {0x113BB, 0x113C0}, {0x113CE, 0x113CE}, {0x113D0, 0x113D0}, {0x113D2, 0x113D2},
  {0x113E1, 0x113E2}, {0x11F00, 0x11F01}, {0x11F36, 0x11F3A}, {0x11F40, 0x11F40},
  {0x11F42, 0x11F42}, {0x11F5A, 0x11F5A}, {0x13440, 0x13440}, {0x13447, 0x13455},
  {0x1611E, 0x16129}, {0x1612D, 0x1612F}, {0x1E08F, 0x1E08F}, {0x1E4EC, 0x1E4EF},
  {0x1E5EE, 0x1E5EF},
 }},
{"Mc",
 {
  {0xCF3, 0xCF3}, {0x113B8, 0x113BA}, {0x113C2, 0x113C2}, {0x113C5, 0x113C5}, {0x113C7, 0x113CA},
  {0x113CC, 0x113CD}, {0x113CF, 0x113CF}, {0x1171E, 0x1171E}, {0x11F03, 0x11F03},
  {0x11F34, 0x11F35}, {0x11F3E, 0x11F3F}, {0x11F41, 0x11F41}, {0x1612A, 0x1612C},
 }},
{"Nd",
 {
  {0x10D40, 0x10D49}, {0x116D0, 0x116E3}, {0x11BF0, 0x11BF9}, {0x11F50, 0x11F59},
  {0x16130, 0x16139}, {0x16D70, 0x16D79}, {0x1CCF0, 0x1CCF9}, {0x1E4F0, 0x1E4F9},
  {0x1E5F1, 0x1E5FA},
 }},
{"No",
 {
  {0x1D2C0, 0x1D2D3},
 }},
{"Pd",
 {
  {0x10D6E, 0x10D6E},
 }},
{"Po",
 {
  {0x1B4E, 0x1B4F}, {0x1B7F, 0x1B7F}, {0x113D4, 0x113D5}, {0x113D7, 0x113D8}, {0x11B00, 0x11B09},
  {0x11BE1, 0x11BE1}, {0x11F43, 0x11F4F}, {0x16D6D, 0x16D6F}, {0x1E5FF, 0x1E5FF},
 }},
{"Sm",
 {
  {0x10D8E, 0x10D8F},
 }},
{"So",
 {
  {0x2427, 0x2429}, {0x2FFC, 0x2FFF}, {0x31E4, 0x31E5}, {0x31EF, 0x31EF}, {0x1CC00, 0x1CCEF},
  {0x1CD00, 0x1CEB3}, {0x1F6DC, 0x1F6DC}, {0x1F774, 0x1F776}, {0x1F77B, 0x1F77F},
  {0x1F7D9, 0x1F7D9}, {0x1F8B2, 0x1F8BB}, {0x1F8C0, 0x1F8C1}, {0x1FA75, 0x1FA77},
  {0x1FA87, 0x1FA89}, {0x1FA8F, 0x1FA8F}, {0x1FAAD, 0x1FAAF}, {0x1FABB, 0x1FABF},
  {0x1FAC6, 0x1FAC6}, {0x1FACE, 0x1FACF}, {0x1FADA, 0x1FADC}, {0x1FADF, 0x1FADF},
  {0x1FAE8, 0x1FAE9}, {0x1FAF7, 0x1FAF8}, {0x1FBCB, 0x1FBEF},
 }},
{"Cf",
 {
  {0x13439, 0x1343F},
 }},
{"Han",
 {
  {0x2B739, 0x2B739}, {0x2EBF0, 0x2EE5D}, {0x31350, 0x323AF},
 }},
{"Hiragana",
 {
  {0x1B132, 0x1B132},
 }},
{"Katakana",
 {
  {0x1B155, 0x1B155},
 }},
{"Arabic",
 {
  {0x897, 0x897}, {0x10EC2, 0x10EC4}, {0x10EFC, 0x10EFF},
 }},
{"Cyrillic",
 {
  {0x1C89, 0x1C8A}, {0x1E030, 0x1E06D}, {0x1E08F, 0x1E08F},
 }},
{"Latin",
 {
  {0xA7CB, 0xA7CD}, {0xA7DA, 0xA7DC}, {0x1DF25, 0x1DF2A},
 }},
{"Devanagari",
 {
  {0x11B00, 0x11B09},
 }},
  };
  return rows;
}
// clang-format on

struct Union {
  const char* name;
  std::vector<std::string> parts;  // names of Rows
};

// Properties that are unions of others, and properties that both libraries define alike.
const std::vector<Union>& Unions() {
  static const std::vector<Union> unions = {
      {"L", {"Lu", "Ll", "Lm", "Lo"}},
      {"M", {"Mn", "Mc"}},
      {"N", {"Nd", "No"}},
      {"P", {"Pd", "Po"}},
      {"S", {"Sm", "So"}},
      {"w", {"Lu", "Ll", "Lm", "Lo", "Mn", "Mc", "Nd"}},
      {"d", {"Nd"}},
      {"Lt", {}},
      {"Me", {}},
      {"Nl", {}},
      {"Pc", {}},
      {"Ps", {}},
      {"Pe", {}},
      {"Pi", {}},
      {"Pf", {}},
      {"Sc", {}},
      {"Sk", {}},
      {"Z", {}},
      {"Zs", {}},
      {"Zl", {}},
      {"Zp", {}},
      {"Cc", {}},
      {"Co", {}},
      {"Hangul", {}},
      {"Thai", {}},
      {"Greek", {}},
      {"Hebrew", {}},
  };
  return unions;
}

// The name without case, spaces, hyphens and underscores, as Oniguruma compares names.
std::string Plain(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c == ' ' || c == '-' || c == '_') continue;
    plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return plain;
}

[[noreturn]] void Refuse(std::string_view name) {
  std::vector<std::string> served;
  for (const Union& one : Unions()) {
    if (std::isupper(static_cast<unsigned char>(one.name[0])) != 0) served.emplace_back(one.name);
  }
  for (const Row& row : Rows()) served.emplace_back(row.name);
  std::sort(served.begin(), served.end());
  throw Error(ErrorKind::kInput,
              fmt::format("the property \\p{{{}}} is not understood; evald serves {}", name,
                          Join(served, ", ")));
}

}  // namespace

Widening WideningOf(std::string_view name) {
  Widening out;
  const std::string plain = Plain(name);
  for (const Row& row : Rows()) {
    if (Plain(row.name) != plain) continue;
    out.more = row.more;
    if (plain == "mn") out.less = {{0x1171E, 0x1171E}};
    return out;
  }
  for (const Union& one : Unions()) {
    if (Plain(one.name) != plain) continue;
    for (const std::string& part : one.parts) {
      const Widening widening = WideningOf(part);
      out.more.insert(out.more.end(), widening.more.begin(), widening.more.end());
    }
    return out;
  }
  Refuse(name);
}

}  // namespace evald::tok
