// The functions that make documents of wikitext, drop, hendrycks_math and truthfulqa_gen of
// lm_eval/tasks.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "datasets/document_functions.h"
#include "evald/error.h"
#include "metrics/scoring/math_strings.h"
#include "python/str.h"
#include "python/value.h"

namespace evald {
namespace {

// re.sub(r"/' [0-9]/", r"/'[0-9]/", text): the digit is lost, as in lm_eval.
std::string FixFeet(const std::string& text) {
  constexpr std::string_view kBegin = "/' ";
  std::string out;
  size_t at = 0;
  for (size_t found = text.find(kBegin); found != std::string::npos;
       found = text.find(kBegin, found)) {
    const size_t digit = found + kBegin.size();
    const bool matches = digit + 1 < text.size() && text[digit] >= '0' && text[digit] <= '9' &&
                         text[digit + 1] == '/';
    if (!matches) {
      ++found;
      continue;
    }
    out += text.substr(at, found - at) + "/'[0-9]/";
    at = found = digit + 2;
  }
  return out + text.substr(at);
}

// Without white space behind `open` and before the next `close`, as
// re.sub(r"OPEN\s*([^CLOSE]*?)\s*CLOSE", r"OPEN\1CLOSE", text).
std::string Tightened(const std::string& text, char open, char close) {
  std::string out;
  size_t at = 0;
  for (;;) {
    const size_t begin = text.find(open, at);
    const size_t end = begin == std::string::npos ? begin : text.find(close, begin + 1);
    if (end == std::string::npos) return out += text.substr(at);
    out += text.substr(at, begin + 1 - at);
    out += python::Strip(std::string_view(text).substr(begin + 1, end - begin - 1));
    out += close;
    at = end + 1;
  }
}

std::string ReplaceEach(std::string text,
                        std::initializer_list<std::pair<std::string_view, std::string_view>> all) {
  for (const auto& [from, to] : all) text = python::Replace(text, from, to);
  return text;
}

[[noreturn]] void ThrowAnswer(const std::string& problem) {
  throw Error(ErrorKind::kInput, problem,
              "expected are members 'number', 'spans' and 'date', as the dataset drop has them");
}

const Json& MemberOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (!object.is_object() || found == object.end())
    ThrowAnswer(fmt::format("an answer has no member '{}'", name));
  return *found;
}

// parse_answer of drop/utils.py: a tuple, which becomes a list.
Json ParseDropAnswer(const Json& answer) {
  const Json& number = MemberOf(answer, "number");
  if (number != "") return Json::array({PythonStr(number)});
  const Json& spans = MemberOf(answer, "spans");
  if (!spans.is_array()) ThrowAnswer("the spans of an answer are no list");
  if (!spans.empty()) return spans;
  const Json& date = MemberOf(answer, "date");
  std::vector<std::string> parts;
  for (const char* part : {"day", "month", "year"}) {
    const Json& text = MemberOf(date, part);
    if (!text.is_string()) ThrowAnswer(fmt::format("the {} of an answer's date is no text", part));
    parts.push_back(text.get<std::string>());
  }
  return Json::array({std::string(python::Strip(Join(parts, " ")))});
}

// The answer, and those of the validation, which the dataset has as a mapping of lists.
std::vector<Json> DropCandidates(const Json& doc) {
  const auto answer = doc.find("answer"), validated = doc.find("validated_answers");
  if (answer == doc.end() || validated == doc.end())
    ThrowAnswer("the document has no columns 'answer' and 'validated_answers'");
  std::vector<Json> candidates = {*answer};
  const size_t count = MemberOf(*validated, "number").size();
  for (size_t i = 0; i < count; ++i) {
    Json one = Json::object();
    for (const char* name : {"number", "date", "spans"}) {
      const Json& all = MemberOf(*validated, name);
      if (!all.is_array() || i >= all.size())
        ThrowAnswer(
            fmt::format("validated_answers has fewer entries in '{}' than in 'number'", name));
      one[name] = all[i];
    }
    candidates.push_back(std::move(one));
  }
  return candidates;
}

// _format_answers of truthfulqa/utils.py: each answer ends with a full stop.
std::vector<std::string> WithFullStops(const std::vector<std::string>& answers) {
  std::vector<std::string> formatted;
  for (const std::string& answer : answers) {
    std::string text(python::Strip(answer));
    if (text.empty()) continue;
    if (text.back() != '.') text += '.';
    formatted.push_back(std::move(text));
  }
  return formatted;
}

}  // namespace

// wikitext_detokenizer.
Json WikitextTarget(const Json& doc) {
  std::string text = python::Replace(TextColumn(doc, "page"), "s '", "s'");
  text = ReplaceEach(FixFeet(text), {{" @-@ ", "-"},
                                     {" @,@ ", ","},
                                     {" @.@ ", "."},
                                     {" : ", ": "},
                                     {" ; ", "; "},
                                     {" . ", ". "},
                                     {" ! ", "! "},
                                     {" ? ", "? "},
                                     {" , ", ", "}});
  for (const char* pair : {"()", "[]", "{}", "\"\"", "''"})
    text = Tightened(text, pair[0], pair[1]);
  return ReplaceEach(std::move(text), {{"= = = =", "===="},
                                       {"= = =", "==="},
                                       {"= =", "=="},
                                       {" \u00b0 ", "\u00b0"},
                                       {" \n", "\n"},
                                       {"\n ", "\n"},
                                       {" N ", " 1 "},
                                       {" 's", "'s"}});
}

void DropDocs(Documents* documents, FunctionRandom*) {
  MapRows(documents, [](const Json& row) -> Json {
    const std::vector<Json> candidates = DropCandidates(row);
    Json answers = Json::array();
    for (const Json& candidate : candidates) {
      Json answer = ParseDropAnswer(candidate);
      if (std::find(answers.begin(), answers.end(), answer) == answers.end())
        answers.push_back(std::move(answer));
    }
    return {{"id", TextColumn(row, "query_id")},
            {"passage", TextColumn(row, "passage")},
            {"question", TextColumn(row, "question")},
            {"answers", std::move(answers)}};
  });
}

void HendrycksMathDocs(Documents* documents, FunctionRandom*) {
  MapRows(documents, [](const Json& row) -> Json {
    const std::string& solution = TextColumn(row, "solution");
    const auto boxed = LastBoxed(solution, BoxForms::kBracesAndSpace);
    const auto content = boxed ? RemoveBoxed(*boxed, BoxForms::kBracesAndSpace) : std::nullopt;
    if (!content) {
      throw Error(ErrorKind::kInput,
                  "the solution holds no \\boxed{...}, of which the answer is the content",
                  "compare the task's data with its source");
    }
    return {{"problem", TextColumn(row, "problem")}, {"solution", solution}, {"answer", *content}};
  });
}

void TruthfulqaDocs(Documents* documents, FunctionRandom*) {
  static constexpr const char* kNoComment = "I have no comment.";
  MapRows(documents, [](const Json& row) -> Json {
    const std::vector<std::string> wrong = WithFullStops(TextsColumn(row, "incorrect_answers"));
    std::vector<std::string> right = WithFullStops(TextsColumn(row, "correct_answers"));
    if (std::find(right.begin(), right.end(), kNoComment) == right.end())
      right.emplace_back(kNoComment);
    return {{"question", std::string(python::Strip(TextColumn(row, "question")))},
            {"correct_answers", right},
            {"incorrect_answers", wrong}};
  });
}

}  // namespace evald
