#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>

#include "base/read_roots.h"
#include "datasets/documents.h"
#include "evald/error.h"

namespace {

/// A file of this process for each ending that a reader goes by.
std::string PathFor(const char* ending) {
  return "/tmp/evald-fuzz-documents-" + std::to_string(getpid()) + ending;
}

void Read(const std::string& path, const char* data, size_t size, bool as_loader) {
  using namespace evald;
  std::ofstream(path, std::ios::binary).write(data, static_cast<std::streamsize>(size));
  try {
    Documents documents;
    DatasetColumns columns;
    ReadDocuments(ReadRoots().OpenFile(path), path, {}, {as_loader, DataFormat::kByEnding},
                  std::nullopt, nullptr, &columns, &documents);
    if (documents.rows.size() != documents.where.size()) __builtin_trap();
  } catch (const Error&) {
  }
  unlink(path.c_str());
}

}  // namespace

// Any bytes as a dataset: rows, or an Error. The first byte chooses the kind of file.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string kPaths[] = {PathFor(".jsonl"), PathFor(".json"), PathFor(".csv"),
                                       PathFor(".jsonl.gz")};
  if (size == 0) return 0;
  Read(kPaths[data[0] % 4], reinterpret_cast<const char*>(data) + 1, size - 1,
       data[0] / 4 % 2 == 1);
  return 0;
}
