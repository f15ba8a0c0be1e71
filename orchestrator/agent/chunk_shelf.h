#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/file.h"
#include "orchestrator/staging/fingerprint.h"

namespace evald {

/// What an agent can give to others of the checkpoints on its host: those that are staged, and the
/// chunks that have come of those that it still fetches. Only files that a checkpoint's list of
/// chunks names are opened. Any thread.
class ChunkShelf {
 public:
  explicit ChunkShelf(std::filesystem::path root) : root_(std::move(root)) {}

  /// A checkpoint that is being fetched into a folder. Its destructor ends that.
  class Filling {
   public:
    Filling(ChunkShelf* shelf, std::string fingerprint);
    ~Filling();
    /// The chunk lies in the folder, and is what the list of chunks says.
    void Landed(size_t file, uint64_t chunk);

   private:
    ChunkShelf* shelf_;
    std::string fingerprint_;
  };
  /// One at a time for each fingerprint. The shelf outlives the result.
  std::unique_ptr<Filling> Fill(const std::string& fingerprint, const std::filesystem::path& folder,
                                const std::vector<HashedFile>& files);

  /// The fingerprints of all checkpoints that are here or on their way.
  std::vector<std::string> Fingerprints() const;

  enum class Found { kHere, kNotYet, kNothing };
  struct Opened {
    Found found = Found::kNothing;
    UniqueFd fd;
  };
  /// Opens a file of a checkpoint if its bytes [first, last] are here.
  Opened Open(const std::string& fingerprint, const std::string& name, uint64_t first,
              uint64_t last);

 private:
  struct Row {
    std::filesystem::path folder;
    std::vector<HashedFile> files;  // without hashes
    std::vector<std::vector<bool>> landed;
  };
  Found Look(const Row& row, const std::string& name, uint64_t first, uint64_t last) const;
  bool Names(const std::string& fingerprint, const std::string& name);

  const std::filesystem::path root_;
  mutable std::mutex mutex_;
  std::map<std::string, Row> filling_;                            // by fingerprint
  std::map<std::string, std::map<std::string, uint64_t>> names_;  // of staged ones: bytes by name
};

}  // namespace evald
