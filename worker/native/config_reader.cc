#include "worker/native/config_reader.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/jsonl.h"
#include "evald/error.h"

namespace evald::native {

ConfigReader::ConfigReader(const Json& json, std::string where)
    : json_(json), where_(std::move(where)) {
  if (!json.is_object()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: found {}, expected an object", where_, json.type_name()));
  }
}

bool ConfigReader::Has(const std::string& key) const {
  const auto found = json_.find(key);
  return found != json_.end() && !found->is_null();
}

int64_t ConfigReader::Size(const std::string& key, int64_t maximum) const {
  const auto found = json_.find(key);
  if (found != json_.end() && found->is_number_integer()) {
    const bool fits = !found->is_number_unsigned() || found->get<uint64_t>() <= INT64_MAX;
    const int64_t value = fits ? found->get<int64_t>() : 0;
    if (value >= 1 && value <= maximum) return value;
  }
  Refuse(key, fmt::format("an integer from 1 to {}", maximum));
}

int64_t ConfigReader::SizeOr(const std::string& key, int64_t maximum, int64_t otherwise) const {
  return Has(key) ? Size(key, maximum) : otherwise;
}

double ConfigReader::Positive(const std::string& key) const {
  const auto found = json_.find(key);
  if (found != json_.end() && found->is_number()) {
    const auto value = found->get<double>();
    if (value > 0 && std::isfinite(value)) return value;
  }
  Refuse(key, "a positive number");
}

double ConfigReader::PositiveOr(const std::string& key, double otherwise) const {
  return Has(key) ? Positive(key) : otherwise;
}

double ConfigReader::NotNegativeOr(const std::string& key, double otherwise) const {
  if (Has(key) && json_[key].is_number() && json_[key] == 0) return 0;
  return PositiveOr(key, otherwise);
}

bool ConfigReader::FlagOr(const std::string& key, bool otherwise) const {
  return FieldOr<bool>(json_, key, otherwise, where_);
}

std::string ConfigReader::TextOr(const std::string& key, const std::string& otherwise) const {
  return FieldOr<std::string>(json_, key, otherwise, where_);
}

ConfigReader ConfigReader::Object(const std::string& key) const {
  static const Json kEmpty = Json::object();
  if (!Has(key)) return {kEmpty, where_};
  if (!json_[key].is_object()) Refuse(key, "an object or null");
  return {json_[key], where_ + ": " + key};
}

void ConfigReader::Refuse(const std::string& key, const std::string& expected,
                          const std::string& remedy) const {
  const auto found = json_.find(key);
  std::string text = "nothing";
  if (found != json_.end()) text = found->dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  throw Error(ErrorKind::kInput,
              fmt::format("{}: {}: found {}, expected {}", where_, key, text, expected), remedy);
}

}  // namespace evald::native
