#include "base/json_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr size_t kStepsMax = 200;
constexpr size_t kMembersShown = 12;

bool IsNameByte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '-';
}

// What a person finds in place of the member or element, "an object with 'a', 'b'".
std::string Described(const Json& value) {
  if (value.is_array())
    return fmt::format("a list of {} element{}", value.size(), value.size() == 1 ? "" : "s");
  if (!value.is_object()) return Shortened(PrintableLine(value.dump()), 80);
  std::vector<std::string> names;
  for (const auto& item : value.items()) {
    if (names.size() == kMembersShown) {
      names.emplace_back("…");
      break;
    }
    names.push_back("'" + Shortened(PrintableLine(item.key()), 60) + "'");
  }
  return names.empty() ? "an object without members" : "an object with " + Join(names, ", ");
}

}  // namespace

class JsonPath::Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}

  std::vector<Step> Read() {
    if (!text_.starts_with('$')) Fail(0, "expected '$', with which a path begins");
    at_ = 1;
    std::vector<Step> steps;
    while (at_ < text_.size()) {
      if (steps.size() == kStepsMax) Fail(at_, fmt::format("more than {} steps", kStepsMax));
      steps.push_back(text_[at_] == '.' ? Member() : Bracket());
      steps.back().end = at_;
    }
    return steps;
  }

 private:
  [[noreturn]] void Fail(size_t at, const std::string& problem) const {
    throw Error(ErrorKind::kInput,
                fmt::format("the path '{}', character {}: {}", Shortened(PrintableLine(text_), 200),
                            CodePoints(std::string_view(text_).substr(0, at)) + 1, problem),
                "a path is like $.results.scores[0]['exact_match,none']");
  }

  Step Member() {
    const size_t begin = ++at_;
    while (at_ < text_.size() && IsNameByte(text_[at_])) ++at_;
    if (at_ == begin) Fail(begin, "expected a member's name after '.'");
    return {text_.substr(begin, at_ - begin)};
  }

  Step Bracket() {
    if (text_[at_] != '[') Fail(at_, "expected '.' or '['");
    ++at_;
    const char first = at_ < text_.size() ? text_[at_] : '\0';
    Step step = first == '\'' || first == '"' ? Quoted(first) : Element();
    if (at_ >= text_.size() || text_[at_] != ']') Fail(at_, "expected ']'");
    ++at_;
    return step;
  }

  // Within quotes, a backslash stands before a quote or a backslash.
  Step Quoted(char quote) {
    std::string name;
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      name.push_back(text_[at_]);
    }
    if (at_ >= text_.size()) Fail(at_, "the quoted name has no end");
    ++at_;
    return {std::move(name)};
  }

  Step Element() {
    int64_t number = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
    if (error != std::errc()) Fail(at_, "expected an element's number or a quoted name after '['");
    at_ += static_cast<size_t>(end - begin);
    return {number};
  }

  const std::string& text_;
  size_t at_ = 0;
};

JsonPath::JsonPath(const std::string& text) : text_(text), steps_(Reader(text_).Read()) {}

const Json& JsonPath::Find(const Json& document) const {
  const Json* value = &document;
  size_t known = 1;  // of the text: what was found
  for (const Step& step : steps_) {
    const Json* next = nullptr;
    if (const auto* name = std::get_if<std::string>(&step.key)) {
      const auto found = value->is_object() ? value->find(*name) : value->end();
      if (found != value->end()) next = &*found;
    } else if (value->is_array()) {
      const auto count = static_cast<int64_t>(value->size());
      const int64_t asked = std::get<int64_t>(step.key);
      const int64_t index = asked < 0 ? asked + count : asked;
      if (index >= 0 && index < count) next = &(*value)[static_cast<size_t>(index)];
    }
    if (next == nullptr) {
      throw Error(ErrorKind::kInput,
                  fmt::format("there is no {}: {} is {}", text_.substr(0, step.end),
                              text_.substr(0, known), Described(*value)));
    }
    value = next;
    known = step.end;
  }
  return *value;
}

}  // namespace evald
