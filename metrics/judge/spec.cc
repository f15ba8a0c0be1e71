#include "metrics/judge/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/judge/settings.h"

namespace evald {
namespace {

constexpr int64_t kVotesMax = 100;
constexpr int64_t kReasksMax = 20;
constexpr size_t kMessagesMax = 32;
constexpr size_t kChoicesMax = 100;
constexpr uint64_t kPromptBytesMax = uint64_t{1} << 20;
constexpr int64_t kSeedMax = int64_t{1} << 30;  // votes are added; servers take 32 bits

const std::vector<std::string>& SpecKeys() {
  static const std::vector<std::string> kKeys = {
      "prompt", "messages", "reference",  "disagreement", "pattern", "group",
      "match",  "json",     "choices",    "range",        "votes",   "combine",
      "reasks", "unparsed", "max_tokens", "temperature",  "seed",    "response_format"};
  return kKeys;
}

class SpecReader {
 public:
  explicit SpecReader(const MetricSpec& metric) : metric_(metric), given_(metric.kwargs) {
    spec_.name = metric.metric;
  }

  JudgeSpec Read() {
    for (const auto& [key, value] : given_.items()) {
      if (std::count(SpecKeys().begin(), SpecKeys().end(), key) > 0) continue;
      Fail(fmt::format("has no key '{}'{}", key, Suggestion(key, SpecKeys())),
           "its keys are " + Join(SpecKeys(), ", "));
    }
    ReadMessages();
    if (Has("reference")) spec_.reference = Text("reference");
    ReadPlaceOfVerdict();
    ReadMeaning();
    ReadVotes();
    ReadCall();
    return std::move(spec_);
  }

 private:
  [[noreturn]] void Fail(const std::string& message, const std::string& remedy = "") const {
    throw Error(ErrorKind::kInput, fmt::format("the metric '{}': {}", metric_.metric, message),
                remedy);
  }
  [[noreturn]] void FailAt(const char* key, const std::string& expected) const {
    Fail(
        fmt::format("{} is {}, expected {}", key, Shortened(ToLine(given_.at(key)), 80), expected));
  }

  bool Has(const char* key) const { return given_.contains(key) && !given_.at(key).is_null(); }

  std::string Text(const char* key) const {
    if (!given_.at(key).is_string() || given_.at(key) == "") FailAt(key, "text");
    return given_.at(key).get<std::string>();
  }

  std::string Word(const char* key, const char* one, const char* other) const {
    if (!Has(key)) return one;
    if (given_.at(key) != one && given_.at(key) != other)
      FailAt(key, fmt::format("{} or {}", one, other));
    return given_.at(key).get<std::string>();
  }

  double Number(const Json& value, const char* key) const {
    if (!value.is_number() || !std::isfinite(value.get<double>())) FailAt(key, "numbers");
    return value.get<double>();
  }

  int64_t Integer(const char* key, int64_t least, int64_t most, int64_t fallback) const {
    if (!Has(key)) return fallback;
    const Json& value = given_.at(key);
    if (!value.is_number_integer() || value < least || value > most)
      FailAt(key, fmt::format("an integer from {} to {}", least, most));
    return value.get<int64_t>();
  }

  std::shared_ptr<const jinja::Template> Compiled(const std::string& text,
                                                  const std::string& where) const {
    jinja::TemplateOptions options = jinja::TemplateOptions::Harness();
    options.strict_undefined = true;
    options.limits.output_bytes_max = kPromptBytesMax;
    return std::make_shared<const jinja::Template>(
        text, options, fmt::format("the metric '{}': {}", metric_.metric, where));
  }

  void ReadMessages() {
    if (Has("prompt") == Has("messages")) {
      Fail(Has("prompt") ? "has both 'prompt' and 'messages'" : "has no 'prompt'",
           "give either 'prompt', a template, or 'messages', a list of {role, content}");
    }
    if (Has("prompt")) {
      spec_.messages.push_back({"user", Compiled(Text("prompt"), "prompt")});
      return;
    }
    const Json& list = given_.at("messages");
    if (!list.is_array() || list.empty() || list.size() > kMessagesMax)
      FailAt("messages", fmt::format("a list of 1 to {} messages", kMessagesMax));
    for (const Json& message : list) {
      const bool whole = message.is_object() && message.size() == 2 && message.contains("role") &&
                         message.contains("content") && message.at("content").is_string();
      if (!whole) FailAt("messages", "mappings of a role and a content, {role: user, content: …}");
      const Json& role = message.at("role");
      if (role != "system" && role != "user" && role != "assistant")
        Fail(fmt::format("a message's role is {}, expected system, user or assistant",
                         Shortened(ToLine(role), 80)));
      spec_.messages.push_back(
          {role.get<std::string>(), Compiled(message.at("content").get<std::string>(),
                                             fmt::format("messages[{}]", spec_.messages.size()))});
    }
  }

  void ReadPlaceOfVerdict() {
    if (Has("pattern") == Has("json")) {
      Fail(Has("json") ? "has both 'pattern' and 'json'" : "says not where the verdict stands",
           "give either 'pattern', a regular expression, or 'json', a key or path such as "
           "$.verdict.score");
    }
    if (Has("json")) {
      for (const char* key : {"group", "match"}) {
        if (Has(key)) Fail(fmt::format("'{}' goes together with 'pattern'", key));
      }
      const std::string path = Text("json");
      spec_.path.emplace(path.starts_with('$') ? path : "$." + path);
      return;
    }
    try {
      spec_.pattern.emplace(Text("pattern"), PythonRegexFlags{.multiline = true});
    } catch (Error& e) {
      throw e.AddContext(fmt::format("the metric '{}'", metric_.metric));
    }
    spec_.group = static_cast<int>(Integer("group", 0, 99, 1));
    if (spec_.group > spec_.pattern->groups()) {
      Fail(fmt::format("the pattern '{}' has {} groups, and group {} is the verdict",
                       Text("pattern"), spec_.pattern->groups(), spec_.group),
           "put the verdict in parentheses, as in 'Score: ([0-9]+)', or set 'group: 0'");
    }
    spec_.first_match = Word("match", "last", "first") == "first";
  }

  void ReadMeaning() {
    if (spec_.pair()) return ReadSides();
    if (Has("disagreement")) Fail("'disagreement' goes together with 'reference'");
    if (Has("choices") == Has("range")) {
      Fail(
          Has("range") ? "has both 'choices' and 'range'" : "says not which verdicts there are",
          "give either 'range', as in [1, 10], or 'choices' with their scores, as in {A: 1, B: 0}");
    }
    if (Has("choices"))
      return ReadChoices([&](const Json& score) { return Number(score, "choices"); });
    const Json& range = given_.at("range");
    if (!range.is_array() || range.size() != 2) FailAt("range", "two numbers, as in [1, 10]");
    spec_.range = {Number(range[0], "range"), Number(range[1], "range")};
    if (!(spec_.range->first < spec_.range->second))
      FailAt("range", "the lowest score and then the highest");
  }

  // Verdicts of a pair are kept as the score of the answer that is shown as A.
  void ReadSides() {
    if (Has("range")) {
      Fail("'range' rates one response, and 'reference' compares two",
           "leave out one of them; verdicts of a pair are 'choices' such as {A: a, B: b, C: tie}");
    }
    spec_.differ_is_tie = Word("disagreement", "average", "tie") == "tie";
    if (!Has("choices")) {
      spec_.choices = {{"A", 1.0}, {"B", 0.0}, {"C", 0.5}};
      return;
    }
    ReadChoices([&](const Json& side) {
      if (side == "a") return 1.0;
      if (side == "b") return 0.0;
      if (side != "tie") FailAt("choices", "a, b or tie for each choice of a pair");
      return 0.5;
    });
  }

  template <typename ScoreOf>
  void ReadChoices(const ScoreOf& score_of) {
    const Json& choices = given_.at("choices");
    if (!choices.is_object() || choices.empty() || choices.size() > kChoicesMax)
      FailAt("choices", fmt::format("a mapping of 1 to {} choices to scores", kChoicesMax));
    for (const auto& [choice, score] : choices.items())
      spec_.choices.emplace_back(std::string(Trim(choice)), score_of(score));
  }

  void ReadVotes() {
    spec_.votes = static_cast<int>(Integer("votes", 1, kVotesMax, 1));
    spec_.majority = Word("combine", "mean", "majority") == "majority";
    spec_.reasks = static_cast<int>(Integer("reasks", 0, kReasksMax, spec_.reasks));
    if (Has("unparsed")) spec_.unparsed = Number(given_.at("unparsed"), "unparsed");
  }

  void ReadCall() {
    using namespace judge_limits;
    if (Has("max_tokens")) spec_.max_tokens = Integer("max_tokens", 1, kTokensMax, 1);
    if (Has("temperature")) {
      spec_.temperature = Number(given_.at("temperature"), "temperature");
      if (*spec_.temperature < 0 || *spec_.temperature > kTemperatureMax)
        FailAt("temperature", fmt::format("a number from 0 to {:g}", kTemperatureMax));
    }
    spec_.seed = Integer("seed", 0, kSeedMax, spec_.seed);
    if (!Has("response_format")) return;
    if (!given_.at("response_format").is_object())
      FailAt("response_format", "a mapping, such as {type: json_object}");
    spec_.response_format = given_.at("response_format");
  }

  const MetricSpec& metric_;
  const Json& given_;
  JudgeSpec spec_;
};

}  // namespace

JudgeSpec JudgeSpecOf(const MetricSpec& metric) { return SpecReader(metric).Read(); }

}  // namespace evald
