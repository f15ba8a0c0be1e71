#pragma once

#include <string>

#include "evald/json.h"

namespace evald {

/// The value of a plain scalar without a tag in PyYAML (yaml/resolver.py, yaml/constructor.py: YAML
/// 1.1). Throws Error(kInput) without a place for integers beyond 64 bits, for infinities and NaN,
/// for dates, and for `=`.
Json PlainScalar(const std::string& text);

/// The value of a scalar with the tag !!null, !!bool, !!int or !!float (`type` is the tag's word).
/// Throws Error(kInput) without a place if PyYAML refuses it, and like PlainScalar.
Json TaggedScalar(const std::string& type, const std::string& text);

}  // namespace evald
