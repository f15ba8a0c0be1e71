// The parser accepts every JSON that JsonWalk accepts, and gives the same values.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/json_walk.h"
#include "base/jsonl.h"
#include "evald/error.h"

namespace {

using evald::Json;
using evald::TextSpan;

Json Again(evald::JsonWalk* walk, TextSpan value, size_t bytes) {
  const char first = walk->FirstOf(value);
  if (first == '{') {
    Json object = Json::object();
    walk->Members(value, [&](const std::string& key, TextSpan member) {
      object[key] = Again(walk, member, bytes);
    });
    return object;
  }
  if (first == '[') {
    Json list = Json::array();
    walk->Items(value, [&](TextSpan item) { list.push_back(Again(walk, item, bytes)); });
    return list;
  }
  return walk->Parse(value, bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (size > evald::JsonWalk::kKeyBytesMax) return 0;  // longer keys are left out
  evald::TextInMemory memory(text);
  evald::JsonWalk walk(&memory, "text");
  try {
    const Json value = Again(&walk, walk.Value({0, size}), size);
    if (evald::ToLine(value) != evald::ToLine(evald::ParseJson(text, "text"))) std::abort();
  } catch (const evald::Error&) {
  }
  return 0;
}
