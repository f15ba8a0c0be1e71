// Files of generations in any form.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/file.h"
#include "evald/error.h"
#include "evald/task.h"
#include "metrics/generations_input.h"

namespace {

namespace fs = std::filesystem;

fs::path Folder() {
  const fs::path folder = fs::temp_directory_path() / ("evald-fuzz-" + std::to_string(getpid()));
  fs::create_directories(folder);
  return folder;
}

evald::PreparedTask Prepare() {
  const fs::path folder = Folder() / "prepared";
  fs::remove_all(folder);
  evald::TaskDefinition task;
  task.name = "fuzz";
  task.output_type = "generate_until";
  evald::PreparedTaskWriter writer(folder, evald::ToJson(task));
  for (int i = 0; i < 2; ++i) {
    evald::Request request;
    request.doc_id = i;
    writer.Add({i, {{"task_id", i}}, "t", evald::Json()}, {request});
  }
  writer.Finish();
  return evald::PreparedTask(folder);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const evald::PreparedTask task = Prepare();
  static const fs::path folder = Folder();
  evald::WriteFileAtomic(folder / "in", {reinterpret_cast<const char*>(data), size});
  try {
    evald::ImportGenerations(task, folder / "in", folder / "out");
  } catch (const evald::Error&) {
  }
  return 0;
}
