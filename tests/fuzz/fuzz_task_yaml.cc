#include <cstddef>
#include <cstdint>
#include <string>

#include "datasets/documents.h"
#include "datasets/task_config.h"
#include "datasets/yaml_reader.h"
#include "evald/error.h"

// Any text as a task file, and as CSV: a task, rows, or an Error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace evald;
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    ParseTaskConfig(ParseYaml(text, "fuzz.yaml", "fuzz", ReadRoots()), "fuzz/fuzz.yaml");
  } catch (const Error&) {
  }
  try {
    ParseCsv(text, "fuzz.csv", 2);
  } catch (const Error&) {
  }
  return 0;
}
