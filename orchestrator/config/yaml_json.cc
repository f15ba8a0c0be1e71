#include "orchestrator/config/yaml_json.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr int kDepthMax = 32;
constexpr size_t kValuesMax = 100'000;
constexpr size_t kTextBytesMax = 16 << 20;

Json ScalarToJson(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;  // quoted
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL")
    return nullptr;
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  const char* begin = text.data() + (text[0] == '+' ? 1 : 0);
  const char* end = text.data() + text.size();
  int64_t integer = 0;
  auto parsed = std::from_chars(begin, end, integer);
  if (parsed.ec == std::errc() && parsed.ptr == end) return integer;
  double number = 0;
  auto parsed_number = std::from_chars(begin, end, number);
  if (parsed_number.ec == std::errc() && parsed_number.ptr == end && std::isfinite(number)) {
    return number;
  }
  return text;
}

// The size with all aliases expanded: an alias costs a few bytes and may stand for much.
struct Size {
  size_t values = 0;
  size_t text_bytes = 0;
};

void Count(const YAML::Node& node, Size* size) {
  if (node.IsScalar()) size->text_bytes += node.Scalar().size();
  if (++size->values > kValuesMax || size->text_bytes > kTextBytesMax) {
    throw Error(ErrorKind::kUsage,
                fmt::format("larger than {} values or {} of text, aliases written out", kValuesMax,
                            HumanBytes(kTextBytesMax)));
  }
}

Json ToJsonAtDepth(const YAML::Node& node, int depth, Size* size) {
  if (depth > kDepthMax) {
    throw Error(ErrorKind::kUsage, fmt::format("nested deeper than {} levels", kDepthMax));
  }
  Count(node, size);
  switch (node.Type()) {
    case YAML::NodeType::Scalar:
      return ScalarToJson(node);
    case YAML::NodeType::Sequence: {
      Json list = Json::array();
      for (const YAML::Node& item : node) list.push_back(ToJsonAtDepth(item, depth + 1, size));
      return list;
    }
    case YAML::NodeType::Map: {
      Json object = Json::object();
      for (const auto& entry : node) {
        Count(entry.first, size);
        object[entry.first.Scalar()] = ToJsonAtDepth(entry.second, depth + 1, size);
      }
      return object;
    }
    default:
      return nullptr;
  }
}

}  // namespace

Json YamlToJson(const YAML::Node& node) {
  Size size;
  return ToJsonAtDepth(node, 0, &size);
}

}  // namespace evald
