#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace evald {

/// Files are hashed in pieces of this size, whatever size they are read in.
inline constexpr uint64_t kHashChunkBytes = 4 * 1024 * 1024;

/// One file's part of a fingerprint.
struct HashedFile {
  std::string name;  ///< relative, with '/'
  uint64_t bytes = 0;
  /// XXH3-128 (HashHex) of bytes [i * kHashChunkBytes, (i + 1) * kHashChunkBytes) of the file. The
  /// last piece is shorter. Empty for an empty file.
  std::vector<std::string> chunks;
};

/// Number of pieces of a file of `bytes` bytes.
inline uint64_t HashChunksOf(uint64_t bytes) {
  return bytes / kHashChunkBytes + (bytes % kHashChunkBytes == 0 ? 0 : 1);
}

/// The tree hash that names a checkpoint's content, as 32 hexadecimal digits. H is XXH3-128 as 32
/// lower-case hexadecimal digits, "+" joins text, and files are sorted by name, bytewise:
///
///     file_hash   = H(chunks[0] + chunks[1] + ...)
///     fingerprint = H("evald-tree-1\n" + for each file: name "\0" decimal_size "\0" file_hash
///     "\n")
///
/// It does not depend on the order in which pieces were read, nor on the number of threads.
std::string TreeFingerprint(std::vector<HashedFile> files);

/// Whether `text` could be a fingerprint: 32 lower-case hexadecimal digits.
bool IsFingerprint(const std::string& text);

}  // namespace evald
