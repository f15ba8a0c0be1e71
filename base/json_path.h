#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "evald/json.h"

namespace evald {

/// A path to one value of a JSON document: the part of JSONPath (RFC 9535) that names one member or
/// element after another. An example is `$.results.scores[0]['exact_match,strict-match']`. A member
/// stands after a dot (letters, digits, `_`, `-` and all that is not ASCII) or quoted in brackets.
/// An element stands in brackets by its number; a negative number counts from the end.
class JsonPath {
 public:
  /// Throws Error(kInput) that says what is wrong at which character.
  explicit JsonPath(const std::string& text);

  /// The value in `document`. Throws Error(kInput) that names the part of the path that is not
  /// there, and what is there instead.
  const Json& Find(const Json& document) const;

  const std::string& text() const { return text_; }

 private:
  struct Step {
    std::variant<std::string, int64_t> key;
    size_t end = 0;  ///< of this step in the text
  };
  class Reader;

  std::string text_;
  std::vector<Step> steps_;
};

}  // namespace evald
