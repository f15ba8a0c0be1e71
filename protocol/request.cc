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
  static const std::vector<std::string> kKeys = {"until", "max_gen_toks", "do_sample", "settings"};
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

Json ToJson(const SamplingParams& sampling) {
  Json json = Json::object();
  json["until"] = sampling.until;
  json["max_gen_toks"] = sampling.max_gen_toks;
  json["do_sample"] = sampling.do_sample;
  if (!sampling.settings.empty()) json["settings"] = sampling.settings;
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
  return sampling;
}

}  // namespace evald
