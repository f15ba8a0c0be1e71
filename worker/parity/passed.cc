#include "worker/parity/passed.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/own_folder.h"
#include "evald/error.h"

namespace evald::parity {

std::filesystem::path Passed::FileOf(const std::string& what) const {
  return folder_ / (HashHex(what) + ".txt");
}

bool Passed::Has(const std::string& what) const {
  if (folder_.empty()) return false;
  std::error_code absent;
  if (!std::filesystem::exists(folder_, absent)) return false;
  try {
    MakePrivateFolder(folder_, "remove it");
    return std::filesystem::exists(FileOf(what)) && ReadFile(FileOf(what)) == what + "\n";
  } catch (const std::exception& e) {
    log::Warn("parity check: what has passed before is not known: {}", e.what());
    return false;
  }
}

void Passed::Add(const std::string& what) const {
  if (folder_.empty()) return;
  try {
    MakePrivateFolder(folder_, "remove it");
    WriteFileAtomic(FileOf(what), what + "\n");
  } catch (const std::exception& e) {
    log::Warn("parity check: the next worker checks again: {}", e.what());
  }
}

}  // namespace evald::parity
