#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "evald/json.h"

namespace evald {

/// The arguments of json.dumps, and a bound on the text.
struct PythonJsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  int indent = -1;  ///< spaces for each level; -1: all on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  /// Called with the bytes written so far while they grow; it may throw.
  std::function<void(uint64_t bytes)> check;
};

/// `json.dumps(value, ...)` of Python. Bytes of a string that are not UTF-8 become U+FFFD.
std::string PythonJson(const Json& value, const PythonJsonStyle& style = {});

/// `json.dumps(value, indent=2, ensure_ascii=False)`.
std::string PythonJsonIndented(const Json& value);

}  // namespace evald
