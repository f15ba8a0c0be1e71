#include "orchestrator/report/python_json.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "jinja/number.h"

namespace evald {
namespace {

class Writer {
 public:
  explicit Writer(bool indented) : indented_(indented) {}

  std::string Run(const Json& value) {
    Write(value, 0);
    return std::move(out_);
  }

 private:
  void Write(const Json& value, int depth) {
    switch (value.type()) {
      case Json::value_t::object:
        return WriteObject(value, depth);
      case Json::value_t::array:
        return WriteArray(value, depth);
      case Json::value_t::string:
        return WriteString(value.get_ref<const std::string&>());
      case Json::value_t::number_float:
        return WriteFloat(value.get<double>());
      default:
        out_ += value.dump();
    }
  }

  void WriteFloat(double value) {
    if (std::isnan(value)) {
      out_ += "NaN";
    } else if (std::isinf(value)) {
      out_ += value < 0 ? "-Infinity" : "Infinity";
    } else {
      out_ += jinja::FloatRepr(value);
    }
  }

  void WriteString(const std::string& text) {
    out_ += Json(IsUtf8(text) ? text : ReplaceInvalidUtf8(text)).dump();
  }

  void WriteArray(const Json& value, int depth) {
    if (value.empty()) {
      out_ += "[]";
      return;
    }
    out_ += '[';
    bool first = true;
    for (const Json& item : value) {
      Separate(&first, depth + 1);
      Write(item, depth + 1);
    }
    Close(']', depth);
  }

  void WriteObject(const Json& value, int depth) {
    if (value.empty()) {
      out_ += "{}";
      return;
    }
    out_ += '{';
    bool first = true;
    for (const auto& [key, member] : value.items()) {
      Separate(&first, depth + 1);
      WriteString(key);
      out_ += ": ";
      Write(member, depth + 1);
    }
    Close('}', depth);
  }

  void Separate(bool* first, int depth) {
    if (!*first) out_ += indented_ ? "," : ", ";
    *first = false;
    NewLine(depth);
  }
  void Close(char bracket, int depth) {
    NewLine(depth);
    out_ += bracket;
  }
  void NewLine(int depth) {
    if (indented_) out_ += "\n" + std::string(static_cast<size_t>(depth) * 2, ' ');
  }

  bool indented_;
  std::string out_;
};

}  // namespace

std::string PythonJson(const Json& value) { return Writer(false).Run(value); }
std::string PythonJsonIndented(const Json& value) { return Writer(true).Run(value); }

}  // namespace evald
