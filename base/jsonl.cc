#include "base/jsonl.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/file.h"
#include "base/json_tree.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr int kDepthMax = 200;

struct Shape {
  int depth = 0;          // the deepest nesting
  size_t separators = 0;  // at least as many as values and keys, without the outermost value
};

// Counts without parsing: a recursive parser must not get 10^5 levels, and a tree that does not fit
// into memory must not be built.
Shape ShapeOf(std::string_view text) {
  Shape shape;
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      shape.depth = std::max(shape.depth, ++depth);
      ++shape.separators;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',' || c == ':') {
      ++shape.separators;
    }
  }
  return shape;
}

std::string Excerpt(std::string_view text) {
  constexpr size_t kExcerptBytes = 60;
  return PrintableLine(Shortened(text, kExcerptBytes));
}

// The key whose value is being read when the parser stops.
class LastKey : public nlohmann::json_sax<Json> {
 public:
  const std::string& key() const { return key_; }
  bool key(string_t& key) override {
    key_ = key;
    return true;
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t, const std::string&, const Json::exception&) override { return false; }

 private:
  std::string key_;
};

// Throws for an escape such as \ud800 without its other half: the parser stops behind it.
[[noreturn]] void ThrowSurrogate(std::string_view text, size_t byte, const std::string& where) {
  LastKey last;
  Json::sax_parse(text, &last);
  const auto is_half = [&](size_t at) {
    return text.substr(at + 2, 1).find_first_of("dD") == 0 && text.substr(at + 3, 1) > "7";
  };
  size_t escape = text.substr(0, byte).rfind("\\u");
  while (escape != std::string_view::npos && escape > 0 && !is_half(escape))
    escape = text.rfind("\\u", escape - 1);
  const std::string found(escape == std::string_view::npos ? "\\ud800" : text.substr(escape, 6));
  const std::string_view kind =
      found.size() > 3 && std::string_view("cdefCDEF").find(found[3]) != std::string_view::npos
          ? "the second"
          : "the first";
  throw Error(
      ErrorKind::kInput,
      fmt::format("{}: {}not JSON at byte {}: found {}, {} half of a character without the other",
                  where, last.key().empty() ? "" : fmt::format("key '{}': ", Excerpt(last.key())),
                  byte, found, kind),
      "write both halves, as in \\ud83d\\ude00, or \\ufffd instead");
}

// The number that is too large, at the end of the library's message, which quotes all its digits.
std::string TooLargeIn(std::string_view message) {
  const size_t quote = message.find('\'');
  if (quote == std::string_view::npos) return "a number";
  message.remove_prefix(quote + 1);
  if (message.ends_with('\'')) message.remove_suffix(1);
  const std::string digits =
      message.size() < 40 ? "" : fmt::format(" ({} characters)", message.size());
  return fmt::format("the number {}{}", Excerpt(message), digits);
}

// The error for NaN or Infinity just before `byte` (from 1), with the line; "" if there is none.
// Python's json writes and reads them, although they are no JSON.
std::string NoNumberAt(std::string_view text, size_t byte) {
  for (size_t at = byte < 3 ? 0 : byte - 3; at < std::min(byte + 1, text.size()); ++at) {
    for (const std::string_view word : {"NaN", "Infinity"}) {
      if (!text.substr(at).starts_with(word)) continue;
      const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<int64_t>(at), '\n');
      return fmt::format("line {} holds {}, which Python's json writes and which is no JSON", line,
                         word);
    }
  }
  return "";
}

}  // namespace

std::string ToLine(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json ParseJson(std::string_view text, const std::string& where, size_t values_max) {
  const Shape shape = ShapeOf(text);
  if (shape.depth > kDepthMax) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: JSON is nested deeper than {} levels", where, kDepthMax));
  }
  if (shape.separators > values_max) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: JSON of more than {} values", where, values_max));
  }
  try {
    JsonTree tree;
    Json::sax_parse(text, &tree);
    return tree.Take();
  } catch (const nlohmann::json::parse_error& e) {
    if (std::strstr(e.what(), "surrogate") != nullptr) ThrowSurrogate(text, e.byte, where);
    const std::string no_number = NoNumberAt(text, e.byte);
    if (!no_number.empty()) {
      throw Error(ErrorKind::kInput, fmt::format("{}: {}", where, no_number),
                  "write a number, or null, in its place");
    }
    throw Error(ErrorKind::kInput,
                fmt::format("{}: not JSON at byte {}: found '{}'", where, e.byte, Excerpt(text)),
                "expected one JSON value in UTF-8");
  } catch (const nlohmann::json::out_of_range& e) {  // a number such as 1e999
    throw Error(ErrorKind::kInput,
                fmt::format("{}: found {}, expected a number that a 64-bit float can hold", where,
                            TooLargeIn(e.what())),
                "write a smaller number, or the number as a text");
  }
}

void RequireShortLine(std::string_view line, const JsonLineLimits& limits,
                      const std::string& where) {
  if (line.size() <= limits.bytes) return;
  throw Error(ErrorKind::kInput, fmt::format("{}: a line of {}, expected at most {}", where,
                                             HumanBytes(line.size()), HumanBytes(limits.bytes)));
}

void ForEachJsonLine(const std::filesystem::path& path,
                     const std::function<void(size_t, Json&&)>& visit,
                     const JsonLineLimits& limits) {
  const MappedFile file(path);
  std::string_view rest = file.view();
  for (size_t line = 1; !rest.empty(); ++line) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view text = Trim(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (text.empty()) continue;
    const std::string where = fmt::format("{}:{}", path.string(), line);
    RequireShortLine(text, limits, where);
    visit(line, ParseJson(text, where, limits.values));
  }
}

void ThrowField(const Json& object, const std::string& key, const char* expected,
                const std::string& where) {
  if (!object.is_object()) {
    throw Error(ErrorKind::kInput, fmt::format("{}: found {}, expected an object with the key '{}'",
                                               where, object.type_name(), key));
  }
  const auto found = object.find(key);
  if (found == object.end()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: the key '{}' is absent, expected {}", where, key, expected));
  }
  throw Error(ErrorKind::kInput,
              fmt::format("{}: key '{}': found {} ({}), expected {}", where, key,
                          Excerpt(ToLine(*found)), found->type_name(), expected));
}

}  // namespace evald
