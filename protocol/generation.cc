#include "evald/generation.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/jsonl.h"
#include "evald/error.h"

namespace evald {
namespace {

struct FinishName {
  FinishReason reason;
  const char* name;
};

constexpr FinishName kFinishNames[] = {
    {FinishReason::kStop, "stop"},
    {FinishReason::kEos, "eos"},
    {FinishReason::kLength, "length"},
};

const char* FinishText(FinishReason reason) {
  for (const FinishName& entry : kFinishNames) {
    if (entry.reason == reason) return entry.name;
  }
  throw Error(ErrorKind::kInternal, "a text generation that says it was scored");
}

FinishReason FinishFromText(const std::string& name, const std::string& where) {
  for (const FinishName& entry : kFinishNames) {
    if (name == entry.name) return entry.reason;
  }
  throw Error(
      ErrorKind::kInput,
      fmt::format("{}: key 'finish': found '{}', expected stop, eos or length", where, name));
}

Json LoglikelihoodToJson(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return value;
}

double LoglikelihoodFromJson(const Json& json, const std::string& where) {
  const auto found = json.find("loglikelihood");
  if (found != json.end() && found->is_string()) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (*found == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (*found == "inf") return kInfinity;
    if (*found == "-inf") return -kInfinity;
  }
  return Field<double>(json, "loglikelihood", where);
}

}  // namespace

bool IsTruncatedAnswer(const Generation& generation) {
  return generation.kind == RequestKind::kGenerateUntil &&
         generation.finish == FinishReason::kLength;
}

bool IsUndefined(const Generation& generation) {
  return generation.undefined > 0 || std::isnan(generation.loglikelihood);
}

// JSON has neither NaN nor infinities: texts stand for them.
Json ToJson(const Generation& generation) {
  Json json = Json::object();
  json["doc_id"] = generation.doc_id;
  json["idx"] = generation.idx;
  json["repeat"] = generation.repeat;
  if (generation.kind == RequestKind::kGenerateUntil) {
    if (!generation.thinking.empty()) json["thinking"] = generation.thinking;
    json["text"] = generation.text;
    json["finish"] = FinishText(generation.finish);
  } else {
    json["loglikelihood"] = LoglikelihoodToJson(generation.loglikelihood);
    if (generation.kind == RequestKind::kLoglikelihood) json["is_greedy"] = generation.is_greedy;
  }
  json["tokens_in"] = generation.tokens_in;
  json["tokens_out"] = generation.tokens_out;
  json["truncated"] = generation.truncated;
  if (generation.undefined > 0) json["undefined"] = generation.undefined;
  return json;
}

Generation GenerationFromJson(const Json& json, const std::string& where) {
  Generation generation;
  generation.doc_id = Field<int64_t>(json, "doc_id", where);
  generation.idx = Field<int>(json, "idx", where);
  generation.repeat = Field<int>(json, "repeat", where);
  if (json.contains("loglikelihood")) {
    const bool rolling = !json.contains("is_greedy");
    generation.kind = rolling ? RequestKind::kLoglikelihoodRolling : RequestKind::kLoglikelihood;
    generation.loglikelihood = LoglikelihoodFromJson(json, where);
    if (!rolling) generation.is_greedy = Field<bool>(json, "is_greedy", where);
    generation.finish = FinishReason::kScored;
  } else {
    generation.text = Field<std::string>(json, "text", where);
    generation.thinking = FieldOr<std::string>(json, "thinking", "", where);
    generation.finish = FinishFromText(Field<std::string>(json, "finish", where), where);
  }
  generation.tokens_in = Field<int>(json, "tokens_in", where);
  generation.tokens_out = Field<int>(json, "tokens_out", where);
  generation.truncated = Field<int>(json, "truncated", where);
  generation.undefined = FieldOr<int>(json, "undefined", 0, where);
  return generation;
}

}  // namespace evald
