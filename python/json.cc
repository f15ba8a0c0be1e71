#include "python/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "python/number.h"
#include "python/unicode.h"

namespace evald {
namespace {

class Writer {
 public:
  explicit Writer(const PythonJsonStyle& style) : style_(style) {}

  std::string Run(const Json& value) {
    Write(value, 0);
    return std::move(out_);
  }

 private:
  void Write(const Json& value, int depth) {
    switch (value.type()) {
      case Json::value_t::object:
        WriteObject(value, depth);
        break;
      case Json::value_t::array:
        WriteArray(value, depth);
        break;
      case Json::value_t::string:
        WriteString(value.get_ref<const std::string&>());
        break;
      case Json::value_t::number_float:
        WriteFloat(value.get<double>());
        break;
      default:
        out_ += value.dump();
    }
    Check();
  }

  void WriteFloat(double value) {
    if (std::isnan(value)) {
      out_ += "NaN";
    } else if (std::isinf(value)) {
      out_ += value < 0 ? "-Infinity" : "Infinity";
    } else {
      out_ += python::FloatRepr(value);
    }
  }

  void WriteString(const std::string& text) {
    out_ += '"';
    if (IsUtf8(text)) {
      WriteCharacters(text);
    } else {
      WriteCharacters(ReplaceInvalidUtf8(text));
    }
    out_ += '"';
  }

  void WriteCharacters(std::string_view text) {
    size_t plain = 0;  // where the bytes begin that are not written yet
    for (size_t i = 0; i < text.size();) {
      const auto byte = static_cast<unsigned char>(text[i]);
      const bool escaped =
          byte < 0x20 || byte == '"' || byte == '\\' || (style_.ensure_ascii && byte >= 0x80);
      if (!escaped) {
        ++i;
        continue;
      }
      out_ += text.substr(plain, i - plain);
      size_t end = i + 1;
      if (byte >= 0x80) {
        while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;
        WriteUnits(python::Decode(text.substr(i, end - i))[0]);
      } else {
        WriteEscape(static_cast<char>(byte));
      }
      plain = i = end;
    }
    out_ += text.substr(plain);
  }

  void WriteEscape(char c) {
    const std::string_view known = "\"\\\n\r\t\f\b";
    const std::string_view letter = "\"\\nrtfb";
    const size_t at = known.find(c);
    if (at == std::string_view::npos) return WriteUnit(static_cast<unsigned char>(c));
    out_ += '\\';
    out_ += letter[at];
  }

  // A code point beyond ASCII, as UTF-16 has it.
  void WriteUnits(char32_t c) {
    const auto code = static_cast<uint32_t>(c);
    if (code < 0x10000) return WriteUnit(code);
    WriteUnit(0xd800 + ((code - 0x10000) >> 10));
    WriteUnit(0xdc00 + ((code - 0x10000) & 0x3ff));
  }

  void WriteUnit(uint32_t unit) { out_ += fmt::format("\\u{:04x}", unit); }

  void WriteArray(const Json& value, int depth) {
    out_ += '[';
    bool first = true;
    for (const Json& item : value) {
      Separate(&first, depth + 1);
      Write(item, depth + 1);
    }
    if (!first) NewLine(depth);
    out_ += ']';
  }

  void WriteObject(const Json& value, int depth) {
    using Member = std::pair<const std::string*, const Json*>;
    std::vector<Member> members;
    for (const auto& [key, member] : value.get_ref<const Json::object_t&>()) {
      members.emplace_back(&key, &member);
    }
    if (style_.sort_keys) {
      std::sort(members.begin(), members.end(),
                [](const Member& a, const Member& b) { return *a.first < *b.first; });
    }
    out_ += '{';
    bool first = true;
    for (const auto& [key, member] : members) {
      Separate(&first, depth + 1);
      WriteString(*key);
      out_ += style_.key_separator;
      Write(*member, depth + 1);
    }
    if (!first) NewLine(depth);
    out_ += '}';
  }

  void Separate(bool* first, int depth) {
    if (!*first) out_ += style_.item_separator;
    *first = false;
    NewLine(depth);
  }

  void NewLine(int depth) {
    if (style_.indent < 0) return;
    out_ += '\n';
    out_.append(static_cast<size_t>(style_.indent) * static_cast<size_t>(depth), ' ');
    Check();
  }

  void Check() const {
    if (style_.check) style_.check(out_.size());
  }

  const PythonJsonStyle& style_;
  std::string out_;
};

}  // namespace

std::string PythonJson(const Json& value, const PythonJsonStyle& style) {
  return Writer(style).Run(value);
}

std::string PythonJsonIndented(const Json& value) {
  PythonJsonStyle style;
  style.indent = 2;
  style.item_separator = ",";
  return PythonJson(value, style);
}

}  // namespace evald
