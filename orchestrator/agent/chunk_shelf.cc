#include "orchestrator/agent/chunk_shelf.h"

#include <fcntl.h>

#include <algorithm>

#include "evald/error.h"
#include "orchestrator/staging/chunk_list.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

UniqueFd OpenPlain(const fs::path& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
}

}  // namespace

ChunkShelf::Filling::Filling(ChunkShelf* shelf, std::string fingerprint)
    : shelf_(shelf), fingerprint_(std::move(fingerprint)) {}

ChunkShelf::Filling::~Filling() {
  const std::lock_guard lock(shelf_->mutex_);
  shelf_->filling_.erase(fingerprint_);
}

void ChunkShelf::Filling::Landed(size_t file, uint64_t chunk) {
  const std::lock_guard lock(shelf_->mutex_);
  shelf_->filling_.at(fingerprint_).landed.at(file).at(chunk) = true;
}

std::unique_ptr<ChunkShelf::Filling> ChunkShelf::Fill(const std::string& fingerprint,
                                                      const fs::path& folder,
                                                      const std::vector<HashedFile>& files) {
  Row row{folder, {}, {}};
  for (const HashedFile& file : files) {
    row.files.push_back({file.name, file.bytes, {}});
    row.landed.emplace_back(HashChunksOf(file.bytes), false);
  }
  const std::lock_guard lock(mutex_);
  filling_[fingerprint] = std::move(row);
  names_.erase(fingerprint);
  return std::make_unique<Filling>(this, fingerprint);
}

std::vector<std::string> ChunkShelf::Fingerprints() const {
  std::vector<std::string> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [fingerprint, row] : filling_) all.push_back(fingerprint);
  }
  std::error_code error;
  for (fs::directory_iterator it(root_, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (IsFingerprint(name)) all.push_back(std::move(name));
  }
  return all;
}

ChunkShelf::Found ChunkShelf::Look(const Row& row, const std::string& name, uint64_t first,
                                   uint64_t last) const {
  for (size_t i = 0; i < row.files.size(); ++i) {
    if (row.files[i].name != name || last >= row.files[i].bytes) continue;
    for (uint64_t chunk = first / kHashChunkBytes; chunk <= last / kHashChunkBytes; ++chunk) {
      if (!row.landed[i][chunk]) return Found::kNotYet;
    }
    return Found::kHere;
  }
  return Found::kNothing;
}

// Whether the list of a staged checkpoint names the file.
bool ChunkShelf::Names(const std::string& fingerprint, const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto known = names_.find(fingerprint);
  if (known != names_.end()) return known->second.count(name) > 0;
  std::map<std::string, uint64_t> names;
  try {
    for (const HashedFile& file : ReadChunkList(root_ / fingerprint)) names[file.name] = file.bytes;
  } catch (const Error&) {
    return false;  // it is not here (any more), or an earlier version staged it
  }
  return (names_[fingerprint] = std::move(names)).count(name) > 0;
}

ChunkShelf::Opened ChunkShelf::Open(const std::string& fingerprint, const std::string& name,
                                    uint64_t first, uint64_t last) {
  if (!IsFingerprint(fingerprint)) return {};
  {
    std::unique_lock lock(mutex_);
    const auto filling = filling_.find(fingerprint);
    if (filling != filling_.end()) {
      const Found found = Look(filling->second, name, first, last);
      if (found != Found::kHere) return {found, {}};
      const fs::path path = filling->second.folder / name;
      lock.unlock();
      UniqueFd fd = OpenPlain(path);
      if (fd) return {Found::kHere, std::move(fd)};
      // It has been published meanwhile
    }
  }
  if (!Names(fingerprint, name)) return {};
  UniqueFd fd = OpenPlain(root_ / fingerprint / name);
  if (!fd) {  // dropped
    const std::lock_guard lock(mutex_);
    names_.erase(fingerprint);
    return {};
  }
  return {Found::kHere, std::move(fd)};
}

}  // namespace evald
