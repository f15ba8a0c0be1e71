// hellaswag, winogrande and race of lm_eval/tasks.
#include <fmt/format.h>

#include <cmath>

#include "base/jsonl.h"
#include "base/text.h"
#include "datasets/document_functions.h"
#include "evald/error.h"
#include "python/number.h"
#include "python/str.h"
#include "python/unicode.h"
#include "python/value.h"

namespace evald {
namespace {

constexpr size_t kNone = std::string::npos;

// re.sub(r"\[.*?\]", "", text): brackets on one line.
std::string WithoutBrackets(std::string_view text) {
  std::string out;
  size_t at = 0, close = 0, line_end = 0;
  for (size_t open = text.find('['); open != kNone; open = text.find('[', open)) {
    if (close < open + 1) close = text.find(']', open + 1);
    if (close == kNone) break;
    if (line_end < open + 1) line_end = text.find('\n', open + 1);
    if (line_end < close) {
      ++open;
      continue;
    }
    out += text.substr(at, open - at);
    at = open = close + 1;
  }
  return out += text.substr(at);
}

// preprocess of hellaswag/utils.py.
std::string HellaswagClean(std::string_view text) {
  const std::string titled = python::Replace(python::Strip(text), " [title]", ". ");
  return python::Replace(WithoutBrackets(titled), "  ", " ");
}

// int(value).
int64_t PythonInteger(const Json& row, const char* column) {
  const auto found = row.find(column);
  const Json value = found == row.end() ? Json() : *found;
  constexpr double kMost = 9e18;
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value.is_number_float() && std::fabs(value.get<double>()) < kMost)
    return static_cast<int64_t>(value.get<double>());
  if (value.is_string()) {
    if (const auto number = python::ParseInt(value.get_ref<const std::string&>(), 10))
      return *number;
  }
  throw Error(ErrorKind::kInput, fmt::format("the column '{}' is {}, expected a whole number",
                                             column, Shortened(PythonRepr(value), 100)));
}

// The place of the gap in the sentence.
size_t GapOf(const std::string& sentence) {
  const size_t gap = sentence.find('_');
  if (gap != kNone) return gap;
  throw Error(ErrorKind::kInput,
              fmt::format("the sentence '{}' has no gap '_'", Shortened(sentence, 100)));
}

// The problems of a document of race, which the data has as a Python literal.
Json ProblemsOf(const Json& doc) {
  Json problems = PythonLiteral(TextColumn(doc, "problems"));
  if (problems.is_array() && !problems.empty()) return problems;
  throw Error(ErrorKind::kInput, "the column 'problems' is no list of problems");
}

int64_t NumberOfLetter(const std::string& letter) {
  static const std::string kLetters = "ABCD";
  const size_t number = letter.size() == 1 ? kLetters.find(letter) : kNone;
  if (number != kNone) return static_cast<int64_t>(number);
  throw Error(ErrorKind::kInput,
              fmt::format("the answer of a problem is '{}', expected A, B, C or D", letter));
}

std::string OptionOf(const Json& problem, size_t number) {
  const std::vector<std::string> options = TextsColumn(problem, "options");
  if (number < options.size()) return options[number];
  throw Error(ErrorKind::kInput, fmt::format("a problem has {} options, and option {} is wanted",
                                             options.size(), number + 1));
}

}  // namespace

void HellaswagDocs(Documents* documents, FunctionRandom*) {
  MapRows(documents, [](const Json& row) -> Json {
    const std::string context =
        TextColumn(row, "ctx_a") + " " + python::Capitalize(TextColumn(row, "ctx_b"));
    Json choices = Json::array();
    const std::string query = HellaswagClean(TextColumn(row, "activity_label") + ": " + context);
    for (const std::string& ending : TextsColumn(row, "endings"))
      choices.push_back(HellaswagClean(ending));
    return {
        {"query", query}, {"choices", std::move(choices)}, {"gold", PythonInteger(row, "label")}};
  });
}

Json WinograndeText(const Json& doc) {
  const std::string& answer = TextColumn(doc, "answer");
  if (answer == "1" || answer == "2") return answer == "1" ? 0 : 1;
  throw Error(ErrorKind::kInput,
              fmt::format("the column 'answer' is '{}', expected 1 or 2", Shortened(answer, 100)));
}

Json WinograndeTarget(const Json& doc) {
  const std::string& sentence = TextColumn(doc, "sentence");
  return std::string(python::Strip(std::string_view(sentence).substr(GapOf(sentence) + 1)));
}

Json WinograndeChoice(const Json& doc) {
  const std::string& sentence = TextColumn(doc, "sentence");
  const std::string before = sentence.substr(0, GapOf(sentence));
  return Json::array({before + TextColumn(doc, "option1"), before + TextColumn(doc, "option2")});
}

Json RaceText(const Json& doc) {
  constexpr std::string_view kGapEnd = "  _  .";
  std::string text = "Article: " + TextColumn(doc, "article") + "\n\n";
  const Json problems = ProblemsOf(doc);
  for (size_t i = 0; i + 1 < problems.size(); ++i) {
    const std::string& question = TextColumn(problems[i], "question");
    const std::string answer = OptionOf(
        problems[i], static_cast<size_t>(NumberOfLetter(TextColumn(problems[i], "answer"))));
    if (question.ends_with(kGapEnd)) {
      text += question.substr(0, question.size() - kGapEnd.size() + 1) + answer + "\n";
    } else {
      text += "Question: " + question + "\nAnswer: " + answer + "\n";
    }
  }
  return text + TextColumn(problems.back(), "question");
}

Json RaceTarget(const Json& doc) {
  return NumberOfLetter(TextColumn(ProblemsOf(doc).back(), "answer"));
}

Json RaceChoice(const Json& doc) {
  const Json problem = ProblemsOf(doc).back();
  Json choices = Json::array();
  for (size_t i = 0; i < 4; ++i) choices.push_back(OptionOf(problem, i));
  return choices;
}

}  // namespace evald
