#include <gtest/gtest.h>

#include <set>

#include "base/jsonl.h"
#include "evald/error.h"
#include "jinja/template.h"

namespace evald::jinja {
namespace {

TemplateOptions OptionsOf(const std::string& mode) {
  if (mode == "harness") return TemplateOptions::Harness();
  if (mode == "chat") return TemplateOptions::ChatTemplate();
  return TemplateOptions();
}

// Templates that jinja2 renders and this engine refuses by name. Any refusal that is not listed
// here is a failure.
bool IsKnownRefusal(const std::string& message) {
  for (const char* refused : {"is not supported", "the filter 'e' is not known", "is not known"}) {
    if (message.find(refused) != std::string::npos) return true;
  }
  return false;
}

// Renders the templates that tests/oracle/jinja_golden.py rendered with jinja2.
TEST(JinjaGolden, RendersWhatJinja2Renders) {
  Json named;
  size_t rendered = 0;
  size_t errors = 0;
  size_t refused = 0;
  ForEachJsonLine(EVALD_SOURCE_DIR "/tests/golden/jinja/renderings.jsonl", [&](size_t line,
                                                                               Json&& c) {
    if (line == 1) {
      named = std::move(c);
      return;
    }
    const std::string source = c["template"].get<std::string>();
    const Json& variables =
        c["variables"].is_string() ? named[c["variables"].get<std::string>()] : c["variables"];
    std::string output;
    std::string error;
    try {
      output = Template(source, OptionsOf(c["mode"]), "t").Render(variables);
    } catch (const Error& e) {
      error = e.what();
    }
    const std::string shown =
        "line " + std::to_string(line) + " (" + c["mode"].get<std::string>() + "): " + source;
    if (c.contains("error")) {
      EXPECT_NE(error, "") << shown << "\njinja2 raises " << c["error"] << "\nrendered: " << output;
      ++errors;
    } else if (error.empty()) {
      EXPECT_EQ(output, c["output"].get<std::string>()) << shown;
      ++rendered;
    } else {
      EXPECT_TRUE(IsKnownRefusal(error)) << shown << "\n" << error;
      ++refused;
      if (::testing::Test::HasFailure()) std::cerr << "refused: " << error << "\n";
    }
  });
  EXPECT_GT(rendered, 700u);
  EXPECT_GT(errors, 60u);
  EXPECT_LT(refused, 30u);
  std::cout << rendered << " rendered alike, " << errors << " errors alike, " << refused
            << " refused\n";
}

}  // namespace
}  // namespace evald::jinja
