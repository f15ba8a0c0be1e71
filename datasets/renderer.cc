#include "datasets/renderer.h"

#include <fmt/format.h>

#include "datasets/functions.h"
#include "evald/error.h"
#include "python/moment.h"
#include "python/str.h"
#include "python/value.h"

namespace evald {
namespace {

// "007".isdigit() holds, but no Python literal looks so: the harness raises, and so does this.
Json DigitsAsInteger(const std::string& text) { return PythonLiteral(text); }

bool LooksLikeList(const std::string& text) {
  return text.size() >= 2 && text.front() == '[' && text.back() == ']';
}

}  // namespace

DocField::DocField(const Json& value, const std::set<std::string>& columns, std::string key,
                   std::string where)
    : value_(value), key_(std::move(key)), where_(std::move(where)) {
  if (!value_.is_string()) return;
  const auto& text = value_.get_ref<const std::string&>();
  if (IsFunction(value_, &function_)) return;
  if (columns.count(text) != 0) {
    column_ = text;
  } else {
    template_ = std::make_shared<const jinja::Template>(
        text, jinja::TemplateOptions::Harness(), fmt::format("{} of the task at {}", key_, where_));
  }
}

void DocField::Fail(const std::string& message) const {
  throw Error(ErrorKind::kInput, fmt::format("{} of the task at {}: {}", key_, where_, message));
}

const Json& DocField::Column(const Json& doc, const std::string& name) const {
  const auto found = doc.find(name);
  if (found == doc.end()) Fail(fmt::format("the document has no field '{}'", name));
  if (python::HoldsMoment(*found)) {
    Fail(fmt::format("the field '{}' holds dates, which only templates can print", name));
  }
  return *found;
}

Json DocField::Raw(const DocRef& doc, bool tuples_as_text) const {
  if (!function_.empty()) {
    if (doc.values != nullptr && !IsBuiltinDocFunction(function_))
      return doc.values->Value(function_, doc.at, tuples_as_text);
    return DocFunction(function_, doc.row, fmt::format("{}: {}", where_, key_));
  }
  if (!column_.empty()) return Column(doc.row, column_);
  if (template_ != nullptr) return template_->Render(doc.row);
  return value_;
}

Json DocField::Text(const DocRef& doc, bool has_choices) const {
  Json raw = Raw(doc);
  if (template_ == nullptr || !has_choices) return raw;
  const auto& text = raw.get_ref<const std::string&>();
  return python::IsDigits(text) ? DigitsAsInteger(text) : raw;
}

Json DocField::Target(const DocRef& doc, bool has_choices) const {
  // Only a list has several targets; the harness compares a tuple as its text.
  Json raw = Raw(doc, !has_choices);
  if (template_ == nullptr) return raw;
  const auto& text = raw.get_ref<const std::string&>();
  if (has_choices && python::IsDigits(text)) return DigitsAsInteger(text);
  if (!LooksLikeList(text)) return raw;
  try {
    return PythonLiteral(text);
  } catch (const Error&) {
    return raw;
  }
}

std::vector<std::string> DocField::Choices(const DocRef& doc) const {
  Json list = Raw(doc);
  if (template_ != nullptr) {
    try {
      list = PythonLiteral(list.get_ref<const std::string&>());
    } catch (Error& error) {
      error.AddContext(fmt::format("{} of the task at {}", key_, where_));
      throw;
    }
  }
  std::vector<std::string> choices;
  if (!list.is_array() && !list.is_object()) Fail("the choices are not a list");
  for (const Json& choice : list) {
    if (!choice.is_string()) {
      Fail(fmt::format("the choice {} is not text", PythonRepr(choice)));
    }
    choices.push_back(choice.get<std::string>());
  }
  return choices;
}

}  // namespace evald
