#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "orchestrator/staging/identity.h"

namespace evald {

/// What a caller hears while bytes are copied. All calls but `landed` come from the thread that
/// called; an exception from one stops the copy.
struct CopyHooks {
  /// About ten times a second, and once at the end.
  std::function<void(uint64_t bytes_done, uint64_t bytes_total)> progress;
  /// Chunk `chunk` (of kHashChunkBytes) of the file at place `file` is written. From any thread.
  std::function<void(size_t file, uint64_t chunk)> landed;
  /// From here on what lands in `folder` can be followed (checkpoint/landed.h). Not when nothing
  /// has to be copied; again when another process's staging failed and this one begins it anew.
  std::function<void(const std::filesystem::path& folder)> followable;
  /// Set by any thread to stop.
  const std::atomic<bool>* cancel = nullptr;
};

struct CopyOptions {
  int threads = 0;           ///< 0: DefaultCopyThreads()
  uint64_t block_bytes = 0;  ///< of one read and write; divides kHashChunkBytes; 0: the default
  bool direct = true;        ///< O_DIRECT for what is not in the page cache, where it is possible
};

/// Reading waits, copying and hashing compute: twice the processors, at least 8, at most 16.
int DefaultCopyThreads();

struct CopyResult {
  std::string fingerprint;    ///< TreeFingerprint of all files
  uint64_t bytes_read = 0;    ///< from the source
  uint64_t bytes_direct = 0;  ///< of these, past the page cache
  int threads = 0;
};

/// Reads every file of `files` below `source` in parallel, hashes it, and writes it to the same
/// name below `target`, where MakeTree has made it. An empty `target` only reads and hashes. What
/// says what the weights are comes first: all other files, and the begin of each safetensors file.
///
/// Throws Error(kInput) naming the file when one is not, or does not stay, as its stamp says;
/// Error(kInfrastructure) for I/O errors, a full target or when cancelled. The target may then be
/// half-written.
CopyResult CopyTree(const ReadFolder& source, const std::vector<FileStamp>& files,
                    const std::filesystem::path& target, const CopyOptions& options,
                    const CopyHooks& hooks);

/// Throws the Error of a cancelled staging when the flag (nullptr: there is none) is set.
void ThrowIfCancelled(const std::atomic<bool>* cancel);

}  // namespace evald
