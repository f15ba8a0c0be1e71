#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "evald/generation.h"
#include "worker/engine/request_key.h"

namespace evald {

/// The facts of a slice's committed file.
struct GenerationsSummary {
  std::string hash;  ///< XXH3-128 of the file
  uint64_t bytes = 0;
  int64_t requests = 0;
  int64_t truncated = 0;  ///< requests whose prompts lost tokens
  int64_t tokens_in = 0;
  int64_t tokens_out = 0;
  int64_t salvaged = 0;  ///< requests whose answer an earlier attempt wrote
};

/// The generations of one slice while they are made (docs/protocol.md, "Generations file").
///
/// Lines go to `<path>.part` in the order in which they finish, and to the kernel with every
/// Flush(), so a killed process loses at most the lines since the last Flush(). Commit() publishes
/// the lines in the order of their keys: it renames the `.part` if that is in order, otherwise it
/// makes a sorted copy. Equal generations give equal bytes, in whatever order they finished.
///
/// One thread at a time.
class GenerationsFile {
 public:
  /// Begins `<path>.part` with the whole lines in `salvage` for documents [first, end), the first
  /// one of each key. Files in `salvage` may be absent, cut short or full of rubbish. Throws
  /// Error(kInfrastructure) if the file cannot be written.
  GenerationsFile(const std::filesystem::path& path, int64_t first, int64_t end,
                  const std::vector<std::string>& salvage);

  /// Whether the file has a generation of this kind for the key already. Marks the key as one of
  /// the slice's requests: salvaged lines with other keys are not committed.
  bool Expect(const RequestKey& key, RequestKind kind);

  /// Appends a generation. Its key must have been passed to Expect. Throws Error(kInput) for a NaN,
  /// and Error(kInfrastructure) naming the path for a full disk.
  void Add(const Generation& generation);
  void Flush();

  /// Publishes the file under its final name: written, fsynced, renamed, folder fsynced.
  GenerationsSummary Commit();

  int64_t salvaged() const { return salvaged_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  struct Place {
    uint64_t offset = 0;  ///< in the .part file
    uint32_t bytes = 0;   ///< of the line, with its newline
    RequestKind kind = RequestKind::kGenerateUntil;
    bool expected = false;
    bool truncated = false;
    int tokens_in = 0;
    int tokens_out = 0;
    bool salvaged = false;
  };

  void Salvage(const std::string& file, std::string_view bytes, int64_t first, int64_t end);
  void AddLine(const Generation& generation, bool expected);
  GenerationsSummary Summary() const;
  void CommitSorted(GenerationsSummary* summary);

  std::filesystem::path path_;
  std::optional<PendingFile> part_;
  std::map<RequestKey, Place> places_;
  RequestKey last_;
  bool in_order_ = true;
  int64_t salvaged_ = 0;
};

}  // namespace evald
