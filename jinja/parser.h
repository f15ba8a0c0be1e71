#pragma once

#include <string>

#include "jinja/options.h"
#include "jinja/syntax.h"

namespace evald::jinja {

/// Parses a template. Throws Error(kInput) "line <n>: ..." for a template that jinja2 refuses. Also
/// refuses, by name, statements that need other templates (include, import, extends, block) and
/// recursive loops.
Body ParseTemplate(const std::string& source, const TemplateOptions& options);

}  // namespace evald::jinja
