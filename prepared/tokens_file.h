#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/file.h"
#include "evald/request.h"

namespace evald::prepared {

/// Writes a tokens file (docs/formats.md). All numbers are little-endian. The parts are, in order:
/// i32 tokens; padding to 8 bytes; for each request {u64 context begin, u64 continuation begin, u32
/// context count, u32 continuation count}, in tokens; {u64 requests, u64 tokens, the XXH3-128 of
/// everything before it as 32 hexadecimal digits, "evald-t2"}. A context equal to that of the
/// previous request of the same document is stored once. Two processes may write the same file at
/// once: each writes under a name of its own, and the last rename wins.
class TokensWriter {
 public:
  explicit TokensWriter(std::filesystem::path file);
  ~TokensWriter();

  /// Requests come in the task's order.
  void Add(const Request& request);
  void Commit();

 private:
  struct Record {
    uint64_t context_begin, continuation_begin;
    uint32_t context_count, continuation_count;
  };
  uint64_t Append(const std::vector<int32_t>& tokens);

  std::filesystem::path final_;
  PendingFile pending_;
  bool committed_ = false;
  std::vector<Record> records_;
  uint64_t tokens_ = 0;
  int64_t last_document_ = -1;
  std::vector<int32_t> last_context_;
};

/// A memory-mapped tokens file. Immutable; any thread may read.
class TokensFile {
 public:
  /// Throws Error(kInput) if the file is damaged or does not hold `requests` requests.
  TokensFile(std::filesystem::path file, uint64_t requests);

  /// Sets the token lists of the request with number `ordinal` in the task.
  void Get(uint64_t ordinal, Request* request) const;
  /// Number of tokens of that request, context and continuation.
  uint64_t Count(uint64_t ordinal) const;

 private:
  const char* RecordAt(uint64_t ordinal) const;
  std::vector<int32_t> Tokens(uint64_t begin, uint32_t count) const;

  std::filesystem::path path_;
  MappedFile mapped_;
  uint64_t tokens_ = 0;
  uint64_t records_offset_ = 0;
};

}  // namespace evald::prepared
