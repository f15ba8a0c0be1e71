// Patterns of Python's `re`: compiled and searched, or refused.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/text.h"
#include "evald/error.h"
#include "python/regex.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size < 200 ? size : 200);
  try {
    const evald::PythonRegex regex(input);
    if (evald::IsUtf8(input)) regex.ReplaceAll(input, "");
    regex.FindAll("The answer is (B): 1,234.5\n#### 18 \xc3\xa9");
  } catch (const evald::Error&) {
  }
  return 0;
}
