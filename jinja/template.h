#pragma once

#include <memory>
#include <string>
#include <vector>

#include "evald/json.h"
#include "jinja/options.h"

namespace evald::jinja {

struct TemplateTree;

/// A compiled Jinja template. Renders the same text as jinja2 3.1, with Python's str() and repr()
/// of numbers, lists and dicts. Features that it does not support (an unknown filter or method,
/// include, extends, recursive loops, integers beyond 64 bits, changing a list in place) are
/// refused with their name and line. Immutable; any thread may render.
class Template {
 public:
  /// Throws Error(kInput) "<name>: line <n>: ..." if the template does not parse.
  Template(const std::string& source, const TemplateOptions& options, std::string name);
  ~Template();
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;

  /// `variables` is an object. Throws Error(kInput) "<name>: line <n>: ...". The error names a
  /// variable that is undefined.
  std::string Render(const Json& variables) const;

  /// Names that the template reads and does not set, sorted. Names in a branch that is not taken
  /// count too.
  std::vector<std::string> FreeNames() const;

  const std::string& name() const { return name_; }

 private:
  TemplateOptions options_;
  std::string name_;
  std::unique_ptr<TemplateTree> tree_;
};

}  // namespace evald::jinja
