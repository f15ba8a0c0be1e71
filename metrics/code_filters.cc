// The filter "custom" with the functions of lm_eval 0.4.13's code tasks.
#include <fmt/format.h>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "evald/task.h"
#include "metrics/filter_support.h"
#include "python/regex.h"

namespace evald {
namespace {

const std::string& Prompt(const PreparedDocument& document) {
  const auto prompt = document.doc.find("prompt");
  if (prompt == document.doc.end() || !prompt->is_string()) {
    ThrowField(document.doc, "prompt", "a string", fmt::format("document {}", document.doc_id));
  }
  return prompt->get_ref<const std::string&>();
}

// humaneval/utils.build_predictions: the prompt and the text that the model added.
class HumanevalPredictions : public Filter {
 public:
  Json Apply(const Json& responses, const PreparedDocument& document, Fallbacks*) const override {
    FilteredList programs;
    for (const Json& response : Iterate(responses)) {
      programs.Add(Prompt(document) + TextOf(response, "build_predictions"));
    }
    return programs.Take();
  }
};

// humaneval/utils.build_predictions_instruct: the same, up to the first code fence.
class HumanevalInstructPredictions : public Filter {
 public:
  Json Apply(const Json& responses, const PreparedDocument& document, Fallbacks*) const override {
    FilteredList programs;
    for (const Json& response : Iterate(responses)) {
      const std::string& text = TextOf(response, "build_predictions_instruct");
      programs.Add(Prompt(document) + text.substr(0, text.find("```")));
    }
    return programs.Take();
  }
};

// mbpp/utils.build_predictions: the first fenced block. The prompt has opened the fence.
class MbppPredictions : public Filter {
 public:
  MbppPredictions() : block_("```(?:\\w+)?\\n?(.*?)\\n?```", {.dot_all = true}) {}

  Json Apply(const Json& responses, const PreparedDocument&, Fallbacks* fallbacks) const override {
    FilteredList programs;
    for (const Json& response : Iterate(responses)) {
      const std::string& text = TextOf(response, "build_predictions");
      std::string code;
      TakesAnswer(fallbacks, [&] {
        RegexSteps steps;
        if (!FirstBlock("```" + text, &code))
          FirstBlock(language_.ReplaceAll(text, "```", &steps), &code);
      });
      programs.Add(code);
    }
    return programs.Take();
  }

 private:
  bool FirstBlock(const std::string& text, std::string* code) const {
    Regex::Match match;
    RegexSteps steps;
    if (!block_.Search(text, 0, &match, &steps)) return false;
    *code = text.substr(match[1].begin, match[1].end - match[1].begin);
    return true;
  }

  PythonRegex block_;
  PythonRegex language_{"```python"};
};

struct CustomFilter {
  const char* function;
  std::unique_ptr<Filter> (*make)();
};

const CustomFilter kCustomFilters[] = {
    {"humaneval/utils.build_predictions",
     []() -> std::unique_ptr<Filter> { return std::make_unique<HumanevalPredictions>(); }},
    {"humaneval/utils.build_predictions_instruct",
     []() -> std::unique_ptr<Filter> { return std::make_unique<HumanevalInstructPredictions>(); }},
    {"mbpp/utils.build_predictions",
     []() -> std::unique_ptr<Filter> { return std::make_unique<MbppPredictions>(); }},
};

std::unique_ptr<Filter> MakeCustom(const Json& kwargs) {
  constexpr std::string_view kTag = "!function ";
  std::string function = Field<std::string>(kwargs, "filter_fn", "custom");
  if (function.starts_with(kTag)) function = function.substr(kTag.size());
  std::vector<std::string> names;
  for (const CustomFilter& known : kCustomFilters) {
    if (function == known.function) return known.make();
    names.emplace_back(known.function);
  }
  RefuseFunction("", function, "is not known as a filter", names,
                 "a function of a file beside the task's runs with 'task_code: allow' or "
                 "--allow-task-code (docs/task-code.md); served are ");
}

}  // namespace

const std::vector<FilterMaker>& CodeFilterMakers() {
  static const std::vector<FilterMaker> makers = {{"custom", {"filter_fn"}, MakeCustom}};
  return makers;
}

}  // namespace evald
