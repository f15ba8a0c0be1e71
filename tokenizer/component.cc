#include "tokenizer/component.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald::tok {

std::string TypeOf(const Json& component, const std::string& where) {
  return Field<std::string>(component, "type", where);
}

void RefuseType(const std::string& kind, const std::string& type,
                const std::vector<std::string>& served, const std::string& where) {
  throw Error(ErrorKind::kInput, fmt::format("{}: the {} '{}' is not understood; evald serves {}",
                                             where, kind, type, Join(served, ", ")));
}

void CheckMembers(const Json& object, std::initializer_list<std::string_view> known,
                  const std::string& where) {
  for (const auto& [key, value] : object.items()) {
    if (key == "type" || std::find(known.begin(), known.end(), key) != known.end()) continue;
    throw Error(ErrorKind::kInput, fmt::format("{}: the member '{}' is not understood; expected {}",
                                               where, key, fmt::join(known, ", ")));
  }
}

std::string OneCharacter(const Json& object, const std::string& key, const std::string& where) {
  std::string text = Field<std::string>(object, key, where);
  if (CodePoints(text) != 1) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: key '{}': found '{}', expected one character", where, key, text));
  }
  return text;
}

void CheckGrowth(size_t bytes_before, size_t bytes_after) {
  constexpr size_t kFactorMax = 64;
  constexpr size_t kBytesAlways = size_t{1} << 20;
  if (bytes_after <= kBytesAlways || bytes_after / kFactorMax <= bytes_before) return;
  throw Error(
      ErrorKind::kInput,
      fmt::format("the tokenizer's rules make {} out of {} of text, expected at most {} times "
                  "as much",
                  HumanBytes(bytes_after), HumanBytes(bytes_before), kFactorMax));
}

}  // namespace evald::tok
