#pragma once

#include <string>

#include "jinja/syntax.h"
#include "jinja/template.h"

namespace evald::jinja {

/// Parses a template. Throws Error(kInput) "line <n>: ...": for what jinja2 refuses, and by name
/// for statements that need other templates (include, import, extends, block) and recursive loops.
Body ParseTemplate(const std::string& source, const TemplateOptions& options);

}  // namespace evald::jinja
