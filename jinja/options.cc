#include "jinja/options.h"

namespace evald::jinja {

TemplateOptions TemplateOptions::Harness() {
  TemplateOptions options;
  options.keep_trailing_newline = true;
  options.strict_undefined = true;
  options.regex_replace = true;
  return options;
}

TemplateOptions TemplateOptions::ChatTemplate() {
  TemplateOptions options;
  options.trim_blocks = true;
  options.lstrip_blocks = true;
  options.loop_controls = true;
  options.chat = true;
  return options;
}

}  // namespace evald::jinja
