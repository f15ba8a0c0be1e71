#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "datasets/function_values.h"
#include "datasets/task_config.h"
#include "evald/json.h"
#include "jinja/template.h"

namespace evald {

/// One of doc_to_text, doc_to_target, doc_to_choice, gen_prefix or description: a template, the
/// name of a column, a number, a list, a mapping or a !function. Compiled once and evaluated for
/// many documents. Immutable; any thread may evaluate, one at a time if a document has
/// FunctionValues.
class DocField {
 public:
  /// `columns`: the columns of the evaluated split. A text that equals one of them reads that
  /// column. `key` and `where` are used in errors. Throws Error(kInput) for a template that does
  /// not parse.
  DocField(const Json& value, const std::set<std::string>& columns, std::string key,
           std::string where);

  bool IsNull() const { return value_.is_null(); }

  /// The text of the template, or the field itself.
  /// `tuples_as_text`: of a Python function (FunctionValues::Value).
  Json Raw(const DocRef& doc, bool tuples_as_text = false) const;
  /// Like ConfigurableTask.doc_to_text: an integer if the text is digits and the task has choices.
  Json Text(const DocRef& doc, bool has_choices) const;
  /// Like ConfigurableTask.doc_to_target: text, an integer, or a list.
  Json Target(const DocRef& doc, bool has_choices) const;
  /// Like ConfigurableTask.doc_to_choice: a list of texts.
  std::vector<std::string> Choices(const DocRef& doc) const;

 private:
  [[noreturn]] void Fail(const std::string& message) const;
  const Json& Column(const Json& doc, const std::string& name) const;

  Json value_;
  std::string key_;
  std::string where_;
  std::string column_;  ///< set if the value names a column
  std::string function_;
  std::shared_ptr<const jinja::Template> template_;
};

}  // namespace evald
