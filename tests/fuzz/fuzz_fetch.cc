// Arbitrary lists of files of a hub, and arbitrary sources.yaml: each is read or refused, and no
// path that is taken leads out of its folder.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "evald/error.h"
#include "fetch/hub.h"
#include "orchestrator/dataset_fetch/source_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    for (const evald::fetch::HubFile& file : evald::fetch::ParseFileList(text, "list")) {
      const std::filesystem::path path(file.path);
      if (path.is_absolute()) std::abort();
      if (*path.lexically_normal().begin() == "..") std::abort();
    }
  } catch (const evald::Error&) {
  }
  try {
    evald::dataset_fetch::SourceTableText(
        evald::dataset_fetch::ParseSourceTable(text, "sources.yaml"));
  } catch (const evald::Error&) {
  }
  return 0;
}
