#include "evald/request.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace {

struct KindName {
  RequestKind kind;
  const char* name;
};

constexpr KindName kKindNames[] = {
    {RequestKind::kGenerateUntil, "generate_until"},
    {RequestKind::kLoglikelihood, "loglikelihood"},
    {RequestKind::kLoglikelihoodRolling, "loglikelihood_rolling"},
};

void CheckSamplingKeys(const Json& json, const std::string& where) {
  static const std::vector<std::string> kKeys = {"until", "max_gen_toks", "do_sample", "settings",
                                                 "think_end_token"};
  if (!json.is_object()) ThrowField(json, "until", "a list", where);
  for (const auto& [key, value] : json.items()) {
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
      throw Error(ErrorKind::kInput, fmt::format("{}: unknown sampling parameter '{}'{}", where,
                                                 key, Suggestion(key, kKeys)));
    }
  }
}

}  // namespace

std::string_view ToString(RequestKind kind) {
  for (const KindName& entry : kKindNames) {
    if (entry.kind == kind) return entry.name;
  }
  throw Error(ErrorKind::kInternal, "a request kind without a name");
}

RequestKind RequestKindFromString(std::string_view name) {
  for (const KindName& entry : kKindNames) {
    if (entry.name == name) return entry.kind;
  }
  throw Error(ErrorKind::kInput,
              fmt::format("unknown request kind '{}', expected generate_until, loglikelihood or "
                          "loglikelihood_rolling",
                          name));
}

std::optional<ThinkEnd> ParseThinkEnd(const Json& json) {
  if (json.is_number_integer()) {
    // An integer above 2^63 is unsigned in the JSON library.
    const bool fits = json.is_number_unsigned()
                          ? json.get<uint64_t>() <= INT32_MAX
                          : json.get<int64_t>() >= 0 && json.get<int64_t>() <= INT32_MAX;
    return fits ? std::optional(ThinkEnd{"", json.get<int32_t>()}) : std::nullopt;
  }
  if (!json.is_string() || json.get_ref<const std::string&>().empty()) return std::nullopt;
  const auto& text = json.get_ref<const std::string&>();
  if (text.find_first_not_of("0123456789") != std::string::npos) return ThinkEnd{text, -1};
  const size_t digits = std::min(text.find_first_not_of('0'), text.size() - 1);
  constexpr size_t kDigitsMax = 10;
  if (text.size() - digits > kDigitsMax) return std::nullopt;
  return ParseThinkEnd(Json(std::stoll(text.substr(digits))));
}

Json ToJson(const ThinkEnd& end) {
  if (end.token >= 0) return end.token;
  return end.text.empty() ? Json() : Json(end.text);
}

Json ToJson(const SamplingParams& sampling) {
  Json json = Json::object();
  json["until"] = sampling.until;
  json["max_gen_toks"] = sampling.max_gen_toks;
  json["do_sample"] = sampling.do_sample;
  if (!sampling.settings.empty()) json["settings"] = sampling.settings;
  if (sampling.think_end.given()) json["think_end_token"] = ToJson(sampling.think_end);
  return json;
}

SamplingParams SamplingFromJson(const Json& json, const std::string& where) {
  CheckSamplingKeys(json, where);
  SamplingParams sampling;
  sampling.until = FieldOr(json, "until", sampling.until, where);
  sampling.max_gen_toks = FieldOr(json, "max_gen_toks", sampling.max_gen_toks, where);
  sampling.do_sample = FieldOr(json, "do_sample", sampling.do_sample, where);
  sampling.settings = FieldOr<Json>(json, "settings", sampling.settings, where);
  if (!sampling.settings.is_object()) ThrowField(json, "settings", "an object", where);
  if (const auto end = json.find("think_end_token"); end != json.end()) {
    const std::optional<ThinkEnd> parsed = ParseThinkEnd(*end);
    if (!parsed) ThrowField(json, "think_end_token", kThinkEndForm, where);
    sampling.think_end = *parsed;
  }
  return sampling;
}

}  // namespace evald
