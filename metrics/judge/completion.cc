#include "metrics/judge/completion.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr size_t kValuesMax = 100'000;
constexpr size_t kShownBytes = 200;
constexpr int64_t kTokensCountMax = int64_t{1} << 40;
constexpr const char* kCompletionName = "the judge's answer";

[[noreturn]] void RefuseBody(std::string_view body, const std::string& why) {
  throw Error(ErrorKind::kInfrastructure,
              fmt::format("{} is no chat completion: {}; it begins with '{}'", kCompletionName, why,
                          PrintableLine(Shortened(ReplaceInvalidUtf8(body), 80))));
}

// A text, null, or a list of parts of which those of type text count.
std::string ContentOf(const Json& message) {
  const Json content = message.value("content", Json());
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  if (!content.is_array()) return text;
  for (const Json& part : content) {
    if (part.is_object() && part.contains("text") && part.at("text").is_string())
      text += part.at("text").get<std::string>();
  }
  return text;
}

int64_t CountIn(const Json& usage, const char* key) {
  if (!usage.is_object() || !usage.contains(key) || !usage.at(key).is_number_integer()) return 0;
  return std::clamp(usage.at(key).get<int64_t>(), int64_t{0}, kTokensCountMax);
}

}  // namespace

Completion ReadCompletion(std::string_view body) {
  if (Trim(body).empty()) {
    throw Error(ErrorKind::kInfrastructure, fmt::format("{} is empty", kCompletionName));
  }
  Json json;
  try {
    json = ParseJson(body, kCompletionName, kValuesMax);
  } catch (const Error&) {
    RefuseBody(body, "not JSON");
  }
  const Json choices = json.is_object() ? json.value("choices", Json()) : Json();
  if (!choices.is_array() || choices.empty() || !choices[0].is_object() ||
      !choices[0].contains("message") || !choices[0].at("message").is_object()) {
    RefuseBody(body, "it has no choices[0].message");
  }
  Completion completion;
  completion.text = ContentOf(choices[0].at("message"));
  completion.cut = choices[0].value("finish_reason", Json()) == "length";
  const Json usage = json.value("usage", Json());
  completion.tokens_in = CountIn(usage, "prompt_tokens");
  completion.tokens_out = CountIn(usage, "completion_tokens");
  return completion;
}

std::string RefusalIn(std::string_view body) {
  std::string said(body);
  try {
    const Json json = ParseJson(body, kCompletionName, kValuesMax);
    const Json error = json.is_object() ? json.value("error", Json()) : Json();
    const Json message = error.is_object() ? error.value("message", Json()) : error;
    if (message.is_string()) said = message.get<std::string>();
  } catch (const Error&) {
  }
  return PrintableLine(Shortened(ReplaceInvalidUtf8(Trim(said)), kShownBytes));
}

}  // namespace evald
