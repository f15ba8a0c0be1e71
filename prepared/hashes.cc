#include "prepared/hashes.h"

#include <fmt/format.h>

#include <system_error>

#include "base/file.h"
#include "base/hash.h"
#include "base/jsonl.h"
#include "evald/error.h"
#include "prepared/index.h"

namespace evald::prepared {
namespace fs = std::filesystem;

void WriteHashes(const fs::path& directory, const Hashes& hashes) {
  WriteFileAtomic(directory / kHashesFile, ToLine(Json(hashes)) + "\n");
}

Hashes ReadHashes(const fs::path& directory) {
  const fs::path file = directory / kHashesFile;
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return {};
  try {
    return ParseJson(ReadFile(file), file.string()).get<Hashes>();
  } catch (const Error& e) {
    throw Error(ErrorKind::kInput, e.message(), kPrepareAgain);
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: expected a hash for each file: {}", file.string(), e.what()),
                kPrepareAgain);
  }
}

void CheckBytes(const Hashes& hashes, const fs::path& file, std::string_view bytes) {
  if (hashes.empty()) return;
  const auto expected = hashes.find(file.filename().string());
  const std::string found = HashHex(bytes);
  if (expected != hashes.end() && expected->second == found) return;
  throw Error(
      ErrorKind::kInput,
      fmt::format("{}: has changed since it was prepared: found hash {}, {} says {}", file.string(),
                  found, kHashesFile, expected == hashes.end() ? "nothing" : expected->second),
      kPrepareAgain);
}

}  // namespace evald::prepared
