// The filter "custom" with the functions of lm_eval 0.4.13's code tasks, and evald's own filters
// for answers with code in fences.
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

/// A block of code between two lines with "```".
struct CodeBlock {
  std::string info;  // of the first line, behind the fence
  std::string text;
};

/// The blocks of an answer. A fence that no other follows opens none.
std::vector<CodeBlock> BlocksOf(const std::string& answer) {
  constexpr std::string_view kFence = "```";
  std::vector<CodeBlock> blocks;
  bool open = false;
  std::vector<std::string> lines;
  std::string info;
  for (const std::string& line : Split(answer, '\n')) {
    const size_t fence = line.find(kFence);
    if (fence == std::string::npos) {
      lines.push_back(line);
      continue;
    }
    if (open) blocks.push_back({info, Join(lines, "\n")});
    open = !open;
    info = Trim(std::string_view(line).substr(fence + kFence.size()));
    lines.clear();
  }
  return blocks;
}

/// The text between the last two lines with a fence, as LiveCodeBench takes it
/// (lcb_runner/utils/extraction_utils.py), or between the first two.
std::string BlockOf(const std::string& answer, bool last) {
  const std::vector<std::string> lines = Split(answer, '\n');
  std::vector<size_t> fences;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find("```") != std::string::npos) fences.push_back(i);
  }
  if (fences.size() < 2) return "";
  const size_t at = last ? fences.size() - 2 : 0;
  const auto begin = lines.begin() + static_cast<std::ptrdiff_t>(fences[at] + 1);
  const auto end = lines.begin() + static_cast<std::ptrdiff_t>(fences[at + 1]);
  return Join({begin, end}, "\n");
}

std::unique_ptr<Filter> MakeCodeBlock(const Json& kwargs) {
  const auto which = FieldOr<std::string>(kwargs, "which", "last", "code_block");
  if (which != "last" && which != "first") {
    throw Error(ErrorKind::kInput,
                fmt::format("code_block: which: found '{}', expected last or first", which));
  }
  return std::make_unique<EachFilter>([last = which == "last"](const Json& response) -> Json {
    return BlockOf(TextOf(response, "code_block"), last);
  });
}

/// The name of a file in the line that opens a block: "```cpp src/a.cpp", "```cpp:src/a.cpp".
std::string FileNameOf(const std::string& info) {
  const std::string name = info.substr(info.find_last_of(" \t:=") + 1);
  return name.find('.') == std::string::npos && name.find('/') == std::string::npos ? "" : name;
}

/// {name: text} of the blocks with a name, as text of JSON. A later block of a name counts.
std::unique_ptr<Filter> MakeCodeFiles(const Json&) {
  return std::make_unique<EachFilter>([](const Json& response) -> Json {
    Json files = Json::object();
    for (const CodeBlock& block : BlocksOf(TextOf(response, "code_files"))) {
      const std::string name = FileNameOf(block.info);
      if (!name.empty()) files[name] = block.text + "\n";
    }
    return ToLine(files);
  });
}

}  // namespace

const std::vector<FilterMaker>& CodeFilterMakers() {
  static const std::vector<FilterMaker> makers = {{"custom", {"filter_fn"}, MakeCustom},
                                                  {"code_block", {"which"}, MakeCodeBlock},
                                                  {"code_files", {}, MakeCodeFiles}};
  return makers;
}

}  // namespace evald
