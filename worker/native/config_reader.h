#pragma once

#include <cstdint>
#include <string>

#include "evald/json.h"

namespace evald::native {

/// Reads an object of config.json strictly: each accessor throws Error(kInput) naming the file, the
/// key, the value found and the value expected. A key with the value null counts as absent. The
/// JSON must outlive the reader.
class ConfigReader {
 public:
  /// `where` names the file, and the object in it. Throws if `json` is no object.
  ConfigReader(const Json& json, std::string where);

  bool Has(const std::string& key) const;
  int64_t Size(const std::string& key, int64_t maximum) const;  ///< from 1 to `maximum`
  int64_t SizeOr(const std::string& key, int64_t maximum, int64_t otherwise) const;
  double Positive(const std::string& key) const;
  double PositiveOr(const std::string& key, double otherwise) const;
  double NotNegativeOr(const std::string& key, double otherwise) const;  ///< 0 as well
  bool FlagOr(const std::string& key, bool otherwise) const;
  std::string TextOr(const std::string& key, const std::string& otherwise) const;
  /// The object under `key`; an empty one if it is absent.
  ConfigReader Object(const std::string& key) const;

  const Json& json() const { return json_; }
  const std::string& where() const { return where_; }
  /// "<where>: <key>: found <value>, expected <expected>".
  [[noreturn]] void Refuse(const std::string& key, const std::string& expected,
                           const std::string& remedy = "") const;

 private:
  const Json& json_;
  std::string where_;
};

}  // namespace evald::native
