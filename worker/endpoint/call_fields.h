#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "evald/json.h"

namespace evald::endpoint {

/// The members of a call's body. Reading notes which members were read, so that RefuseOthers can
/// name the first that was not: a member that could change the answer is never ignored. A member
/// that is null counts as absent. Throws ApiError(400), which names the member, the value found and
/// the one expected.
class CallFields {
 public:
  /// Throws ApiError(400) if `body` is no object.
  explicit CallFields(const Json& body);

  /// The member, or nullptr.
  const Json* Find(const std::string& key);

  bool Bool(const std::string& key, bool fallback);
  std::optional<int64_t> Integer(const std::string& key, int64_t least, int64_t most);
  std::optional<double> Number(const std::string& key, double least, double most);
  std::optional<std::string> Text(const std::string& key);
  /// A text or a list of texts; none if absent.
  std::vector<std::string> Texts(const std::string& key, size_t count_max, size_t bytes_max);

  /// Takes the member if its value is one that has no effect; `neutral` lists such values. Throws
  /// for any other value: "<key> is not served".
  void OnlyNeutral(const std::string& key, const std::vector<Json>& neutral);
  /// Members that have no effect on the answer, whatever their value.
  void Ignore(const std::vector<std::string>& keys);
  /// Throws if there is a member that no method above has taken.
  void RefuseOthers() const;

  /// Throws "<key>: found <value>, expected <expected>".
  [[noreturn]] static void Expected(const std::string& key, const Json& found,
                                    const std::string& expected);

 private:
  const Json& body_;
  std::set<std::string> known_;
};

}  // namespace evald::endpoint
