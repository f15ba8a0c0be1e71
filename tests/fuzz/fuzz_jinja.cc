#include <cstddef>
#include <cstdint>
#include <string>

#include "evald/error.h"
#include "jinja/template.h"
#include "python/value.h"

// Any text as a template, rendered over a small document in the three environments with tight
// limits, and as a Python literal: an output or an Error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace evald;
  static const Json kDocument = {
      {"s", "a b\nc é"}, {"n", 3},    {"f", 2.5}, {"list", {1, "x", nullptr}},
      {"d", {{"k", 1}}}, {"t", true}, {"e", ""},  {"rows", {{{"k", "v"}}, {{"k", "w"}}}}};
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (jinja::TemplateOptions options :
       {jinja::TemplateOptions(), jinja::TemplateOptions::Harness(),
        jinja::TemplateOptions::ChatTemplate()}) {
    options.limits = {20'000, 4 << 20, 1 << 20};
    try {
      jinja::Template(text, options, "fuzz").Render(kDocument);
    } catch (const Error&) {
    }
  }
  try {
    PythonRepr(PythonLiteral(text));
  } catch (const Error&) {
  }
  return 0;
}
