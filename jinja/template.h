#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/chat_date.h"
#include "evald/error.h"
#include "evald/json.h"

namespace evald::jinja {

/// What one rendering may use before it is stopped with Error(kInput). A template comes from a task
/// file or a checkpoint, so it may be hostile.
struct RenderLimits {
  uint64_t steps_max = 3'000'000;           ///< evaluated expressions and statements
  uint64_t bytes_max = 512ull << 20;        ///< bytes of all values made, dropped ones included
  uint64_t output_bytes_max = 64ull << 20;  ///< bytes of the result
};

/// The environment a template is written for. The defaults are jinja2.Environment()'s.
struct TemplateOptions {
  bool trim_blocks = false;
  bool lstrip_blocks = false;
  bool keep_trailing_newline = false;
  bool strict_undefined = false;  ///< StrictUndefined: printing an undefined value is an error
  bool loop_controls = false;     ///< {% break %} and {% continue %}
  bool regex_replace = false;     ///< the filter that lm-evaluation-harness adds
  /// transformers' additions: raise_exception, strftime_now, a tojson that escapes nothing, and
  /// {% generation %}.
  bool chat = false;
  /// The moment that strftime_now shows. Without one, strftime_now is refused; with a day alone, so
  /// is the time of day.
  std::optional<ChatDate> now;
  RenderLimits limits;

  /// As lm_eval/utils.py makes its environment (lm_eval 0.4.13).
  static TemplateOptions Harness();
  /// As transformers/utils/chat_template_utils.py compiles chat templates (transformers 5.23).
  static TemplateOptions ChatTemplate();
};

struct TemplateTree;

/// What a template itself objects to, or trips over: raise_exception, or the use of what is
/// undefined (jinja2's TemplateError). Of kind kInput.
class TemplateStopped : public Error {
 public:
  explicit TemplateStopped(const std::string& message) : Error(ErrorKind::kInput, message) {}
};

/// A compiled Jinja template that renders what jinja2 3.1 renders, Python's str() and repr() of
/// numbers, lists and dicts included. What it does not know (a filter, a method, include, extends,
/// recursive loops, integers beyond 64 bits, changing a list in place) is refused with its name and
/// line. Immutable; any thread may render.
class Template {
 public:
  /// Throws Error(kInput) "<name>: line <n>: ..." for a template that does not parse.
  Template(const std::string& source, const TemplateOptions& options, std::string name);
  ~Template();
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;

  /// `variables` is an object. Throws Error(kInput) "<name>: line <n>: ...", for an undefined
  /// variable with its name.
  std::string Render(const Json& variables) const;

  /// Names the template reads that it does not set itself, sorted. Those of a branch not taken
  /// count too.
  std::vector<std::string> FreeNames() const;

  const std::string& name() const { return name_; }

 private:
  TemplateOptions options_;
  std::string name_;
  std::unique_ptr<TemplateTree> tree_;
};

}  // namespace evald::jinja
