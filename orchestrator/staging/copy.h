#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "orchestrator/staging/fingerprint.h"
#include "orchestrator/staging/identity.h"

namespace evald {

/// Callbacks during a copy. All but `landed` are called on the caller's thread. An exception from
/// one stops the copy.
struct CopyHooks {
  /// Called about ten times a second, and once at the end.
  std::function<void(uint64_t bytes_done, uint64_t bytes_total)> progress;
  /// Chunk `chunk` (of kHashChunkBytes) of file number `file` is written. Called on any thread.
  std::function<void(size_t file, uint64_t chunk)> landed;
  /// From now on, files that land in `folder` can be followed (checkpoint/landed.h). Not called if
  /// nothing has to be copied. Called again if another process's staging failed and this one starts
  /// it anew.
  std::function<void(const std::filesystem::path& folder)> followable;
  /// Any thread sets it to stop the copy.
  const std::atomic<bool>* cancel = nullptr;
};

struct CopyOptions {
  int threads = 0;           ///< 0: DefaultCopyThreads()
  uint64_t block_bytes = 0;  ///< of one read and write; divides kHashChunkBytes; 0: the default
  bool direct = true;        ///< O_DIRECT, where possible, for files that are not in the page cache
};

/// Twice the number of processors, at least 8 and at most 16: reading waits, while copying and
/// hashing compute.
int DefaultCopyThreads();

struct CopyResult {
  std::string fingerprint;        ///< TreeFingerprint of all files
  std::vector<HashedFile> files;  ///< what the fingerprint is made of
  uint64_t bytes_read = 0;        ///< from the source
  uint64_t bytes_direct = 0;      ///< of these, bytes read past the page cache
  int threads = 0;
};

/// Reads every file of `files` below `source` in parallel, hashes it, and writes it to the same
/// name below `target`, where MakeTree has made it. With an empty `target` it only reads and
/// hashes. Everything that describes the weights comes first: all other files, and the begin of
/// each safetensors file.
///
/// Throws Error(kInput), naming the file, if a file does not have or does not keep its stamp.
/// Throws Error(kInfrastructure) for I/O errors, for a full target, and when cancelled. The target
/// may then be half-written.
CopyResult CopyTree(const ReadFolder& source, const std::vector<FileStamp>& files,
                    const std::filesystem::path& target, const CopyOptions& options,
                    const CopyHooks& hooks);

/// Throws the Error of a cancelled staging if the flag is set. nullptr: it cannot be cancelled.
void ThrowIfCancelled(const std::atomic<bool>* cancel);

}  // namespace evald
