// The main program of a fuzz target in builds without libFuzzer: it runs the target once on each
// file of the folders and files that the command line names.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "base/file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace fs = std::filesystem;

void RunFile(const fs::path& file) {
  // the last line names the input that ends the program
  std::fprintf(stderr, "%s\n", file.c_str());
  const std::string bytes = evald::ReadFile(file);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

int RunAll(const fs::path& path) {
  if (!fs::is_directory(path)) {
    RunFile(path);
    return 1;
  }
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (!entry.is_regular_file()) continue;
    RunFile(entry.path());
    ++files;
  }
  return files;
}

}  // namespace

int main(int count, char** arguments) {
  int files = 0;
  try {
    for (int i = 1; i < count; ++i) files += RunAll(arguments[i]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  if (files == 0) {
    std::fprintf(stderr, "%s: no input; name the files or folders of a corpus\n", arguments[0]);
    return 2;
  }
  std::fprintf(stderr, "%d inputs\n", files);
  return 0;
}
