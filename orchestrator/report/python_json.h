#pragma once

#include <string>

#include "evald/json.h"

namespace evald {

/// `json.dumps(value, ensure_ascii=False)` of Python, on one line.
std::string PythonJson(const Json& value);

/// `json.dumps(value, indent=2, ensure_ascii=False)`.
std::string PythonJsonIndented(const Json& value);

}  // namespace evald
