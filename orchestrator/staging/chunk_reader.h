#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/file.h"
#include "orchestrator/staging/identity.h"

namespace evald {

/// Memory for O_DIRECT: aligned to pages.
class AlignedBuffer {
 public:
  explicit AlignedBuffer(size_t bytes);
  char* data() { return data_.get(); }

 private:
  struct Free {
    void operator()(char* data) const;
  };
  std::unique_ptr<char, Free> data_;
};

/// Reads pieces of one file of a checkpoint: from the page cache if they are in it, otherwise past
/// it. One thread at a time.
class ChunkReader {
 public:
  /// Throws Error(kInput) if the file is gone, or if the opened file has another stamp.
  ChunkReader(const ReadFolder& root, const FileStamp& stamp, bool direct);

  /// Fills `buffer` (of whole pages) with bytes [offset, offset + bytes). `offset` is a multiple of
  /// the page size; so is `bytes`, except at the file's end. Returns the number of bytes read past
  /// the page cache. Throws Error(kInput) if the file has become shorter.
  uint64_t Read(AlignedBuffer* buffer, uint64_t offset, uint64_t bytes);

 private:
  bool Cached(uint64_t bytes) const;
  uint64_t ReadDirect(char* buffer, uint64_t offset, uint64_t bytes);

  std::filesystem::path path_;
  UniqueFd buffered_;
  UniqueFd direct_;  ///< not open if the file is cached or O_DIRECT is refused
};

/// Throws Error(kInput): the source changed while it was staged.
[[noreturn]] void ThrowChanged(const std::filesystem::path& file);

}  // namespace evald
