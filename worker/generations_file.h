#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "evald/generation.h"

namespace evald {

/// The key of a request within its task; the order of the lines of a generations file.
struct RequestKey {
  int64_t doc_id = 0;
  int idx = 0;
  int repeat = 0;
  auto operator<=>(const RequestKey&) const = default;
};

/// What became of a slice's file.
struct GenerationsSummary {
  std::string hash;  ///< XXH3-128 of the file
  uint64_t bytes = 0;
  int64_t requests = 0;
  int64_t truncated = 0;  ///< requests whose prompt lost tokens
  int64_t tokens_in = 0;
  int64_t tokens_out = 0;
  int64_t salvaged = 0;  ///< of the requests: not answered by this attempt
};

/// The generations of one slice while they are being made (docs/protocol.md, "Generations file").
///
/// Lines go to `<path>.part` in the order in which they finish, and to the kernel with every
/// Flush(), so that a killed process loses at most what finished since. Commit() publishes the
/// lines in the order of their keys: by renaming the `.part` when it is in order, else by way of a
/// sorted copy. Equal generations give equal bytes, whatever order they finished in.
///
/// One thread at a time.
class GenerationsFile {
 public:
  /// Begins `<path>.part` with the whole lines that `salvage` (files that may not exist, be cut
  /// short or hold rubbish) has of documents [first, end): the first one of each key.
  /// Throws Error(kInfrastructure) when the file cannot be written.
  GenerationsFile(const std::filesystem::path& path, int64_t first, int64_t end,
                  const std::vector<std::string>& salvage);

  /// Whether a generation of this kind is there for the key. Marks the key as one of the slice's
  /// requests: salvaged lines of other keys are not committed.
  bool Expect(const RequestKey& key, RequestKind kind);

  /// Appends; the key must have been passed to Expect. Throws Error(kInput) for a NaN,
  /// Error(kInfrastructure) naming the path on a full disk.
  void Add(const Generation& generation);
  void Flush();

  /// Publishes under the final name: written, fsynced, renamed, folder fsynced.
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
