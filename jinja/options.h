#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/chat_date.h"
#include "evald/error.h"

namespace evald::jinja {

/// The most that one rendering may use. Beyond a limit it is stopped with Error(kInput). A template
/// comes from a task file or a checkpoint, so it may be hostile.
struct RenderLimits {
  uint64_t steps_max = 3'000'000;           ///< evaluated expressions and statements
  uint64_t bytes_max = 512ull << 20;        ///< bytes of all values ever made, discarded ones too
  uint64_t output_bytes_max = 64ull << 20;  ///< bytes of the result
};

/// The environment for which a template is written. The defaults are those of jinja2.Environment().
struct TemplateOptions {
  bool trim_blocks = false;
  bool lstrip_blocks = false;
  bool keep_trailing_newline = false;
  bool strict_undefined = false;  ///< StrictUndefined: printing an undefined value is an error
  bool loop_controls = false;     ///< {% break %} and {% continue %}
  bool regex_replace = false;     ///< the filter that lm-evaluation-harness adds
  /// transformers' additions: raise_exception, strftime_now, a tojson that escapes nothing, and {%
  /// generation %}.
  bool chat = false;
  /// The moment that strftime_now shows. If there is none, strftime_now is refused. If only the day
  /// is known, the time of day is refused.
  std::optional<ChatDate> now;
  RenderLimits limits;

  /// The environment of lm_eval/utils.py (lm_eval 0.4.13).
  static TemplateOptions Harness();
  /// The environment in which transformers/utils/chat_template_utils.py compiles chat templates
  /// (transformers 5.23).
  static TemplateOptions ChatTemplate();
};

/// An error that the template itself raises or runs into: raise_exception, or the use of an
/// undefined value (jinja2's TemplateError). Of kind kInput.
class TemplateStopped : public Error {
 public:
  explicit TemplateStopped(const std::string& message) : Error(ErrorKind::kInput, message) {}
};

}  // namespace evald::jinja
