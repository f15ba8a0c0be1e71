#include "worker/endpoint/call_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/jsonl.h"
#include "base/text.h"
#include "worker/endpoint/api_error.h"

namespace evald::endpoint {
namespace {

constexpr size_t kShownBytes = 100;

}  // namespace

CallFields::CallFields(const Json& body) : body_(body) {
  if (!body.is_object()) throw ApiError(400, "the body: expected a JSON object");
}

void CallFields::Expected(const std::string& key, const Json& found, const std::string& expected) {
  throw ApiError(400,
                 fmt::format("{}: found {}, expected {}", key,
                             Shortened(ToLine(found), kShownBytes), expected),
                 key, "invalid_value");
}

const Json* CallFields::Find(const std::string& key) {
  known_.insert(key);
  const auto found = body_.find(key);
  return found == body_.end() || found->is_null() ? nullptr : &*found;
}

bool CallFields::Bool(const std::string& key, bool fallback) {
  const Json* value = Find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) Expected(key, *value, "true or false");
  return value->get<bool>();
}

std::optional<int64_t> CallFields::Integer(const std::string& key, int64_t least, int64_t most) {
  const Json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  const bool fits = value->is_number_integer() &&
                    (!value->is_number_unsigned() || value->get<uint64_t>() <= INT64_MAX) &&
                    value->get<int64_t>() >= least && value->get<int64_t>() <= most;
  if (!fits) Expected(key, *value, fmt::format("an integer from {} to {}", least, most));
  return value->get<int64_t>();
}

std::optional<double> CallFields::Number(const std::string& key, double least, double most) {
  const Json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number() || !(value->get<double>() >= least && value->get<double>() <= most))
    Expected(key, *value, fmt::format("a number from {} to {}", least, most));
  return value->get<double>();
}

std::optional<std::string> CallFields::Text(const std::string& key) {
  const Json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) Expected(key, *value, "a string");
  return value->get<std::string>();
}

std::vector<std::string> CallFields::Texts(const std::string& key, size_t count_max,
                                           size_t bytes_max) {
  const Json* value = Find(key);
  if (value == nullptr) return {};
  const Json list = value->is_array() ? *value : Json::array({*value});
  const std::string expected =
      fmt::format("a string, or a list of at most {}, each of 1 to {} bytes", count_max, bytes_max);
  if (list.size() > count_max) Expected(key, *value, expected);
  std::vector<std::string> texts;
  for (const Json& text : list) {
    if (!text.is_string()) Expected(key, *value, expected);
    texts.push_back(text.get<std::string>());
    if (texts.back().empty() || texts.back().size() > bytes_max) Expected(key, *value, expected);
  }
  return texts;
}

void CallFields::OnlyNeutral(const std::string& key, const std::vector<Json>& neutral) {
  const Json* value = Find(key);
  if (value == nullptr || std::find(neutral.begin(), neutral.end(), *value) != neutral.end())
    return;
  throw ApiError(
      400,
      fmt::format("{}: found {}, which is not served", key, Shortened(ToLine(*value), kShownBytes)),
      key, "unsupported_parameter");
}

void CallFields::Ignore(const std::vector<std::string>& keys) {
  known_.insert(keys.begin(), keys.end());
}

void CallFields::RefuseOthers() const {
  for (const auto& [key, value] : body_.items()) {
    if (value.is_null() || known_.contains(key)) continue;
    throw ApiError(400,
                   fmt::format("'{}' is not served{}", Shortened(key, kShownBytes),
                               Suggestion(key, {known_.begin(), known_.end()})),
                   Shortened(key, kShownBytes), "unknown_parameter");
  }
}

}  // namespace evald::endpoint
