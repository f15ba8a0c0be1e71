#include "prepared/index.h"

#include <fmt/format.h>

#include "base/file.h"
#include "evald/error.h"

namespace evald::prepared {
namespace {

constexpr std::string_view kIndexMagic = "evald-p1";
constexpr size_t kHeaderBytes = 16;
constexpr size_t kEntryBytes = 24;

[[noreturn]] void RefuseIndex(const std::filesystem::path& file, const std::string& why) {
  throw Error(ErrorKind::kInput, fmt::format("{}: {}", file.string(), why), kPrepareAgain);
}

}  // namespace

void AppendU64(std::string* out, uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) out->push_back(static_cast<char>(value >> shift));
}

void AppendU32(std::string* out, uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) out->push_back(static_cast<char>(value >> shift));
}

uint64_t LoadU64(const char* bytes) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

uint32_t LoadU32(const char* bytes) {
  uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::string EncodeIndex(const std::vector<IndexEntry>& entries) {
  std::string out(kIndexMagic);
  AppendU64(&out, entries.size() - 1);
  for (const IndexEntry& entry : entries) {
    AppendU64(&out, entry.document_offset);
    AppendU64(&out, entry.request_offset);
    AppendU64(&out, entry.first_request);
  }
  return out;
}

std::vector<IndexEntry> ReadIndex(const std::filesystem::path& file, uint64_t documents_bytes,
                                  uint64_t requests_bytes) {
  const std::string bytes = ReadFile(file);
  if (bytes.size() < kHeaderBytes + kEntryBytes ||
      bytes.compare(0, kIndexMagic.size(), kIndexMagic) != 0) {
    RefuseIndex(file, "not the index of a prepared task (its first bytes should be 'evald-p1')");
  }
  const uint64_t held = (bytes.size() - kHeaderBytes) / kEntryBytes;
  const uint64_t documents = LoadU64(bytes.data() + kIndexMagic.size());
  if (documents != held - 1 || bytes.size() != kHeaderBytes + held * kEntryBytes) {
    RefuseIndex(file,
                fmt::format("found {} bytes, which does not fit the {} documents that it announces",
                            bytes.size(), documents));
  }
  std::vector<IndexEntry> entries(held);
  for (size_t i = 0; i < held; ++i) {
    const char* at = bytes.data() + kHeaderBytes + i * kEntryBytes;
    entries[i] = {LoadU64(at), LoadU64(at + 8), LoadU64(at + 16)};
    const IndexEntry before = i == 0 ? IndexEntry{} : entries[i - 1];
    if (entries[i].document_offset < before.document_offset ||
        entries[i].request_offset < before.request_offset ||
        entries[i].first_request < before.first_request ||
        // Each request takes a line, so there are at most as many requests as bytes.
        entries[i].first_request > entries[i].request_offset) {
      RefuseIndex(file, fmt::format("the offsets of document {} do not rise", i));
    }
  }
  const auto expect_size = [&](const char* name, uint64_t found, uint64_t expected) {
    if (found == expected) return;
    RefuseIndex(file.parent_path() / name,
                fmt::format("found {} bytes, the index says {}", found, expected));
  };
  expect_size("documents.jsonl", documents_bytes, entries.back().document_offset);
  expect_size("requests.jsonl", requests_bytes, entries.back().request_offset);
  return entries;
}

}  // namespace evald::prepared
