#include "orchestrator/api/input.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/jsonl.h"
#include "base/text.h"
#include "http_server/problem.h"

namespace evald::api {
namespace {

// Whether the text has no control characters, as a name must not.
bool IsPlain(const std::string& text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

std::string RangeText(int64_t least, int64_t most) {
  return fmt::format("an integer from {} to {}", least, most);
}

}  // namespace

void BodyReader::Refuse(const std::string& pointer, const std::string& detail) {
  throw http::ProblemError({400, "invalid-body", detail, "", pointer});
}

BodyReader::BodyReader(std::string_view body) {
  try {
    body_ = ParseJson(body, "the body", kBodyValuesMax);
  } catch (const Error& error) {
    Refuse("", error.what());
  }
  if (!body_.is_object())
    Refuse("", fmt::format("the body: found {}, expected an object", body_.type_name()));
}

const Json* BodyReader::Find(const std::string& name) {
  known_.push_back(name);
  const auto found = body_.find(name);
  return found == body_.end() ? nullptr : &*found;
}

std::optional<std::string> BodyReader::String(const std::string& name, size_t length_max) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string())
    Refuse("/" + name, fmt::format("{}: found {}, expected a string", name, value->type_name()));
  std::string text = value->get<std::string>();
  if (CodePoints(text) > length_max)
    Refuse("/" + name, fmt::format("{}: longer than {} characters", name, length_max));
  if (name != "yaml" && !IsPlain(text))
    Refuse("/" + name, fmt::format("{}: holds control characters", name));
  return text;
}

std::optional<int64_t> BodyReader::Integer(const std::string& name, int64_t least, int64_t most) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  // 3.0 is an integer in JSON Schema. Every integer in range is exact as a double.
  const double number = value->is_number() ? value->get<double>() : NAN;
  if (!(number >= static_cast<double>(least) && number <= static_cast<double>(most)) ||
      number != std::floor(number)) {
    Refuse("/" + name, fmt::format("{}: expected {}", name, RangeText(least, most)));
  }
  return static_cast<int64_t>(number);
}

std::optional<double> BodyReader::Number(const std::string& name, double least, double most) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  const double number = value->is_number() ? value->get<double>() : NAN;
  if (!(number >= least && number <= most)) {
    Refuse("/" + name, fmt::format("{}: expected a number from {} to {}", name, least, most));
  }
  return number;
}

std::optional<std::string> BodyReader::Choice(const std::string& name,
                                              const std::vector<std::string>& choices) {
  std::optional<std::string> text = String(name, 200);
  if (!text || std::find(choices.begin(), choices.end(), *text) != choices.end()) return text;
  Refuse("/" + name, fmt::format("{}: found '{}', expected {}{}", name, *text, Join(choices, ", "),
                                 Suggestion(*text, choices)));
}

std::optional<std::vector<std::string>> BodyReader::Strings(const std::string& name,
                                                            size_t count_max, size_t length_max) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array() || value->size() > count_max) {
    Refuse("/" + name, fmt::format("{}: expected a list of at most {} strings", name, count_max));
  }
  std::vector<std::string> strings;
  for (const Json& item : *value) {
    if (!item.is_string() || !IsPlain(item.get_ref<const std::string&>()) ||
        CodePoints(item.get_ref<const std::string&>()) > length_max) {
      Refuse(fmt::format("/{}/{}", name, strings.size()),
             fmt::format(
                 "{}: expected strings of at most {} characters, none of them a control character",
                 name, length_max));
    }
    strings.push_back(item.get<std::string>());
  }
  return strings;
}

std::optional<Json> BodyReader::Object(const std::string& name) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object())
    Refuse("/" + name, fmt::format("{}: found {}, expected an object", name, value->type_name()));
  return *value;
}

void BodyReader::Finish() const {
  for (const auto& [name, value] : body_.items()) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    Refuse("/" + name, fmt::format("unknown member '{}'{}", name, Suggestion(name, known_)));
  }
}

void QueryReader::Refuse(const std::string& name, const std::string& detail) {
  throw http::ProblemError({400, "invalid-query", detail, "", "query:" + name});
}

std::vector<std::string> QueryReader::Strings(const std::string& name, size_t count_max,
                                              size_t length_max) {
  known_.push_back(name);
  std::vector<std::string> values;
  for (const auto& [key, value] : request_.query) {
    if (key != name) continue;
    if (CodePoints(value) > length_max)
      Refuse(name, fmt::format("{}: longer than {} characters", name, length_max));
    if (!IsPlain(value)) Refuse(name, fmt::format("{}: holds control characters", name));
    values.push_back(value);
  }
  if (values.size() > count_max)
    Refuse(name, fmt::format("{}: given {} times, at most {}", name, values.size(), count_max));
  return values;
}

std::optional<std::string> QueryReader::String(const std::string& name, size_t length_max) {
  const std::vector<std::string> values = Strings(name, 1, length_max);
  if (values.empty()) return std::nullopt;
  return values[0];
}

std::optional<int64_t> QueryReader::Integer(const std::string& name, int64_t least, int64_t most) {
  const std::optional<std::string> text = String(name, 64);
  if (!text) return std::nullopt;
  const std::optional<int64_t> value = ParseInteger(*text);
  if (!value || *value < least || *value > most)
    Refuse(name, fmt::format("{}: expected {}", name, RangeText(least, most)));
  return value;
}

std::optional<std::string> QueryReader::Choice(const std::string& name,
                                               const std::vector<std::string>& choices) {
  std::optional<std::string> text = String(name, 200);
  if (!text || std::find(choices.begin(), choices.end(), *text) != choices.end()) return text;
  Refuse(name, fmt::format("{}: found '{}', expected {}{}", name, *text, Join(choices, ", "),
                           Suggestion(*text, choices)));
}

std::optional<bool> QueryReader::Bool(const std::string& name) {
  const std::optional<std::string> text = Choice(name, {"true", "false"});
  if (!text) return std::nullopt;
  return *text == "true";
}

void QueryReader::Finish() const {
  for (const auto& [name, value] : request_.query) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    Refuse(name, fmt::format("unknown parameter '{}'{}", name, Suggestion(name, known_)));
  }
}

std::string EvalText(const std::optional<Json>& config, const std::optional<std::string>& yaml) {
  if (config.has_value() == yaml.has_value()) {
    BodyReader::Refuse("", "expected either 'config' (an object) or 'yaml' (a text), and not both");
  }
  return yaml ? *yaml : ToLine(*config);
}

std::string MediaType(const http::Request& request) {
  const std::string field = request.headers.Get("Content-Type");
  std::string type(Trim(std::string_view(field).substr(0, field.find(';'))));
  for (char& c : type) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return type;
}

std::optional<int64_t> ParseInteger(std::string_view text) {
  const bool padded = text.size() > 1 && (text[0] == '0' || text.starts_with("-0"));
  if (padded) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace evald::api
