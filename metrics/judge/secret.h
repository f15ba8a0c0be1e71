#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace evald {

/// A judge's key, which must not stand in logs, results or kept answers, also where a server quotes
/// it. A key of fewer than 8 characters is a dummy that local servers take: such a text stands
/// anywhere by chance, and is no secret.
class Secret {
 public:
  Secret() = default;
  explicit Secret(const std::string& key);

  /// The text with "***" in place of the key, as it is or as JSON writes it.
  std::string Hide(std::string text) const;
  /// Whether the key stands in the text as it is.
  bool IsIn(std::string_view text) const;

 private:
  std::vector<std::string> forms_;  ///< the key itself first; empty: nothing to hide
};

}  // namespace evald
