#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace evald::prepared {

/// The place of one document in the files of a prepared task. The index holds one entry for each
/// document, and one more that marks the ends.
struct IndexEntry {
  uint64_t document_offset = 0;  ///< bytes into documents.jsonl
  uint64_t request_offset = 0;   ///< bytes into requests.jsonl
  uint64_t first_request = 0;    ///< ordinal of the document's first request within the task
};

/// The bytes of index.bin: the magic "evald-p1", the number of documents, then the entries, each
/// three numbers; all numbers are little-endian u64 (docs/formats.md).
std::string EncodeIndex(const std::vector<IndexEntry>& entries);

/// Reads index.bin. Checks that its offsets rise and end at the sizes of the two files. Throws
/// Error(kInput), which names the condition that does not hold.
std::vector<IndexEntry> ReadIndex(const std::filesystem::path& file, uint64_t documents_bytes,
                                  uint64_t requests_bytes);

/// Little-endian numbers, the form of all binary files of a prepared task.
void AppendU64(std::string* out, uint64_t value);
void AppendU32(std::string* out, uint32_t value);
uint64_t LoadU64(const char* bytes);
uint32_t LoadU32(const char* bytes);

/// The remedy for a damaged file of a prepared task.
inline constexpr const char* kPrepareAgain = "remove this folder; it is made again when needed";

}  // namespace evald::prepared
